package binder

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	storage "k8s.io/component-helpers/storage/volume"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Indexes of PersistentVolumes.
const (
	byClaim = "claim" // namespace and name of the claim that the volume names
	ready   = "ready" // class of a volume that is Available and names no claim
)

// workers is the number of claims that are bound concurrently.
const workers = 16

// Options of the binder.
type Options struct {
	Driver string // whose volumes are bound
	Log    *slog.Logger
	QPS    float32 // requests to the API server per second

	Metrics prometheus.Registerer
}

type (
	queue    = workqueue.TypedRateLimitingInterface[reconcile.Request]
	handlers = handler.TypedFuncs[client.Object, reconcile.Request]
)

// Add adds the binder to the controllers that m runs.
func Add(m ctrl.Manager, o Options) error {
	config := rest.CopyConfig(m.GetConfig())
	config.QPS, config.Burst, config.RateLimiter = o.QPS, int(o.QPS), nil
	own, err := client.New(config, client.Options{Scheme: m.GetScheme(), Mapper: m.GetRESTMapper()})
	if err != nil {
		return fmt.Errorf("make the binder's client: %w", err)
	}
	if err := index(m); err != nil {
		return err
	}
	r := newReconciler(m.GetClient(), own, o)
	if r.times, err = newTimes(o.Driver, o.Metrics); err != nil {
		return err
	}
	r.events = m.GetEventRecorder("stowage-binder")
	return ctrl.NewControllerManagedBy(m).Named("binder").
		Watches(&corev1.PersistentVolumeClaim{}, r.times.handler()).
		Watches(&corev1.PersistentVolumeClaim{}, on(ofClaim)).Watches(&corev1.PersistentVolume{}, on(ofVolume)).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).Complete(r)
}

func newReconciler(cache client.Reader, own client.Client, o Options) *reconciler {
	return &reconciler{
		cache: cache, live: own, write: writer{own}, driver: o.Driver, log: o.Log,
		taken: map[string]string{}, begun: map[types.NamespacedName]intent{},
	}
}

func index(m ctrl.Manager) error {
	for name, of := range map[string]client.IndexerFunc{byClaim: claimOf, ready: classOfReady} {
		if err := m.GetFieldIndexer().IndexField(context.Background(), &corev1.PersistentVolume{}, name, of); err != nil {
			return err
		}
	}
	return nil
}

func claimOf(object client.Object) []string {
	v, ok := object.(*corev1.PersistentVolume)
	if !ok || v.Spec.ClaimRef == nil {
		return nil
	}
	return []string{v.Spec.ClaimRef.Namespace + "/" + v.Spec.ClaimRef.Name}
}

func classOfReady(object client.Object) []string {
	v, ok := object.(*corev1.PersistentVolume)
	if !ok || v.Spec.ClaimRef != nil || v.Status.Phase != corev1.VolumeAvailable {
		return nil
	}
	return []string{storage.GetPersistentVolumeClass(v)}
}

// ofClaim returns the claim's own key.
func ofClaim(object client.Object) *types.NamespacedName {
	key := client.ObjectKeyFromObject(object)
	return &key
}

// ofVolume returns the key of the claim that a volume names.
func ofVolume(object client.Object) *types.NamespacedName {
	v, ok := object.(*corev1.PersistentVolume)
	if !ok || v.Spec.ClaimRef == nil {
		return nil
	}
	return &types.NamespacedName{Namespace: v.Spec.ClaimRef.Namespace, Name: v.Spec.ClaimRef.Name}
}

// on enqueues the claims of objects in random order. Kubernetes' controller handles the oldest claim first. With the
// same order here the two would often bind the same claim, and one of two volumes would have to be freed.
func on(of func(client.Object) *types.NamespacedName) handler.EventHandler {
	enqueue := func(object client.Object, q queue) {
		key := of(object)
		if key == nil {
			return
		}
		request, priority := reconcile.Request{NamespacedName: *key}, rand.IntN(1000) // Not for security.
		if p, ok := q.(priorityqueue.PriorityQueue[reconcile.Request]); ok {
			p.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, request)
			return
		}
		q.Add(request)
	}
	return handlers{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { enqueue(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { enqueue(e.ObjectNew, q) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { enqueue(e.Object, q) },
	}
}

package volumeset

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// looks is the number of sets that are reconciled concurrently.
const looks = 4

// Options of the manager of PersistentVolumeSets.
type Options struct {
	Driver  Driver
	Log     *slog.Logger
	Slots   int           // volumes of a set that are created concurrently, at most 64
	Workers int           // concurrent requests to the driver
	Timeout time.Duration // of each request to the driver
	Surplus time.Duration // how long unbound volumes above the minimum are kept
	Metrics prometheus.Registerer
}

// Add adds the manager of PersistentVolumeSets to the controllers that m runs.
func Add(m ctrl.Manager, o Options) error {
	changes := make(chan event.TypedGenericEvent[string], 1024)
	changed := func(set string) { changes <- event.TypedGenericEvent[string]{Object: set} }
	for name, find := range indexes() {
		if err := m.GetFieldIndexer().IndexField(context.Background(), &corev1.PersistentVolume{}, name, find); err != nil {
			return err
		}
	}
	sets, remove := newParts(m.GetClient(), m.GetAPIReader(), o, m.GetEventRecorder("stowage-volumeset"), changed)
	if err := sets.metrics.register(o.Metrics); err != nil {
		return err
	}
	if err := m.Add(sets.filler); err != nil {
		return err
	}
	err := ctrl.NewControllerManagedBy(m).Named("volumeset").For(&v1alpha1.PersistentVolumeSet{}).
		Watches(&corev1.PersistentVolume{}, handler.EnqueueRequestsFromMapFunc(sets.setsOf)).
		Watches(&corev1.PersistentVolume{}, sets.metrics.bound(o.Driver.Driver(), sets.setsOfClassNamed)).
		Watches(&storagev1.StorageClass{}, handler.EnqueueRequestsFromMapFunc(sets.setsOfClass)).
		WatchesRawSource(source.TypedChannel(changes, handler.TypedFuncs[string, reconcile.Request]{GenericFunc: enqueue})).
		WithOptions(controller.Options{MaxConcurrentReconciles: looks}).
		Complete(sets)
	if err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(m).Named("volumeset-removal").For(&corev1.PersistentVolume{},
		builder.WithPredicates(predicate.NewPredicateFuncs(isEnding))).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: o.Workers,
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstPause,
				lastPause),
		}).
		Complete(remove)
}

// newParts returns the two reconcilers of the manager. Live reads bypass the cache, and changed is called when a set
// must be reconciled again.
func newParts(c client.Client, live client.Reader, o Options, told events.EventRecorder,
	changed func(set string)) (*reconciler, *remover) {
	f := newFiller(&filler{
		client: c, live: live, driver: o.Driver, log: o.Log, events: told, timeout: o.Timeout, fresh: freshFor,
		changed: changed,
		shares:  shares{workers: o.Workers, quarters: half}, classes: shares{workers: o.Workers, quarters: most},
	})
	sets := &reconciler{
		client: c, live: live, driver: o.Driver, filler: f, slots: o.Slots, patient: o.Surplus, now: time.Now, name: newName,
		surplus: map[string]bearing{}, refusals: map[string]*refusal{}, metrics: newMetrics(o.Driver.Driver()),
		failed: &undeleted{}, events: told,
	}
	again := func(ctx context.Context, v *corev1.PersistentVolume) {
		for _, request := range sets.setsOf(ctx, v) {
			changed(request.Name)
		}
	}
	return sets, &remover{
		client: c, live: live, driver: o.Driver, timeout: o.Timeout, now: time.Now, fresh: freshFor,
		shares: shares{workers: o.Workers, quarters: half}, events: told, failed: sets.failed, changed: again,
	}
}

// setsOf returns the sets whose selector matches a PersistentVolume, and the set that created it.
func (r *reconciler) setsOf(ctx context.Context, volume client.Object) []reconcile.Request {
	return r.setsThat(ctx, func(set *v1alpha1.PersistentVolumeSet) bool {
		return selector(set).Matches(labels.Set(volume.GetLabels())) ||
			volume.GetAnnotations()[v1alpha1.VolumeSetAnnotation] == string(set.UID)
	})
}

// setsOfClass returns the sets whose template names a StorageClass.
func (r *reconciler) setsOfClass(ctx context.Context, class client.Object) []reconcile.Request {
	return r.setsOfClassNamed(ctx, class.GetName())
}

func (r *reconciler) setsOfClassNamed(ctx context.Context, class string) []reconcile.Request {
	return r.setsThat(ctx,
		func(set *v1alpha1.PersistentVolumeSet) bool { return set.Spec.Template.Spec.StorageClassName == class })
}

func (r *reconciler) setsThat(ctx context.Context,
	are func(*v1alpha1.PersistentVolumeSet) bool) (requests []reconcile.Request) {
	var all v1alpha1.PersistentVolumeSetList
	if err := r.client.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return nil // The cache is closing.
	}
	for i := range all.Items {
		if are(&all.Items[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Name: all.Items[i].Name}})
		}
	}
	return requests
}

// enqueue requests that a set is reconciled again.
func enqueue(_ context.Context, e event.TypedGenericEvent[string],
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	queue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: e.Object}})
}

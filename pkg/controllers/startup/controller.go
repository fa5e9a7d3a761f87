package startup

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// again is the pause after another writer was first.
const again = 100 * time.Millisecond

// Options of the removal of startup taints.
type Options struct {
	Driver  string
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

// Add adds the removal of startup taints to the controllers that m runs.
func Add(m ctrl.Manager, o Options) error {
	r := newReconciler(o, m.GetClient(), m.GetAPIReader(), m.GetEventRecorder("stowage-startup"))
	if err := r.metrics.register(o.Metrics); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(m).Named("startup").
		For(&corev1.Node{}, builder.WithPredicates(r.tainted())).
		Watches(&storagev1.CSINode{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(r.registered())).
		Complete(r)
}

type reconciler struct {
	Options
	cache   client.Client
	reader  client.Reader // bypasses the cache
	events  events.EventRecorder
	metrics *metrics
}

func newReconciler(o Options, cache client.Client, reader client.Reader, recorder events.EventRecorder) *reconciler {
	return &reconciler{Options: o, cache: cache, reader: reader, events: recorder, metrics: newMetrics(o.Driver)}
}

// tainted selects events of nodes that have the taint or had it before an update.
func (r *reconciler) tainted() predicate.Predicate {
	waiting := func(object client.Object) bool {
		node, ok := object.(*corev1.Node)
		return ok && waits(node, r.Driver)
	}
	return predicate.Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return waiting(e.Object) },
		UpdateFunc:  func(e event.UpdateEvent) bool { return waiting(e.ObjectOld) || waiting(e.ObjectNew) },
		DeleteFunc:  func(e event.DeleteEvent) bool { return waiting(e.Object) },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// registered selects events of CSINodes that list the driver.
func (r *reconciler) registered() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(object client.Object) bool {
		registration, ok := object.(*storagev1.CSINode)
		return ok && lists(registration, r.Driver)
	})
}

// Reconcile reconciles a node and its CSINode, which have the same name.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	node, registration := &corev1.Node{}, &storagev1.CSINode{}
	err := r.read(ctx, r.cache, request.Name, node, registration)
	r.metrics.wait(request.Name, waits(node, r.Driver))
	if err == nil && waits(node, r.Driver) && serves(node, registration, r.Driver) {
		err = r.admit(ctx, request.Name)
	}
	switch {
	case apierrors.IsNotFound(err): // A new object causes an event.
		return reconcile.Result{}, nil
	case apierrors.IsConflict(err): // Another writer was first, usually a kubelet: read again.
		return reconcile.Result{RequeueAfter: again}, nil
	case err != nil:
		r.metrics.failures.Inc()
	}
	return reconcile.Result{}, err
}

// read reads a node and its CSINode. A missing CSINode is left empty.
func (r *reconciler) read(ctx context.Context, from client.Reader, name string, node *corev1.Node,
	registration *storagev1.CSINode) error {
	if err := from.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
		return fmt.Errorf("read node %s: %w", name, err)
	}
	if err := from.Get(ctx, client.ObjectKey{Name: name}, registration); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read CSINode %s: %w", name, err)
	}
	return nil
}

// admit removes the taint of a node, if a live read confirms that the driver serves.
func (r *reconciler) admit(ctx context.Context, name string) error {
	node, registration := &corev1.Node{}, &storagev1.CSINode{}
	if err := r.read(ctx, r.reader, name, node, registration); err != nil {
		return err
	}
	if !waits(node, r.Driver) || !serves(node, registration, r.Driver) {
		return nil // An event of the change will follow.
	}
	before := node.DeepCopy()
	node.Spec.Taints = without(node.Spec.Taints, r.Driver)
	err := r.cache.Patch(ctx, node, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if err != nil {
		return fmt.Errorf("remove the taint %s of node %s: %w", key(r.Driver), name, err)
	}
	r.metrics.wait(name, false)
	r.metrics.removed.Inc()
	r.Log.Info("a node's startup taint is removed", "node", name, "taint", key(r.Driver))
	r.events.Eventf(node, nil, corev1.EventTypeNormal, "DriverRegistered", "Startup",
		"the taint %s is removed: the driver is registered on the node", key(r.Driver))
	return nil
}

package volumeworker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/pools"
)

// Driver is the node's own driver, which csiclient.Client asks.
type Driver interface {
	volumeDriver
	snapshotDriver
	groupDriver
	Pools(ctx context.Context) ([]pools.Pool, error)
}

// Options of the worker.
type Options struct {
	Node, Namespace string // of the node, and of its objects
	Driver          Driver
	Timeout         time.Duration // of a call to the driver
	Period          time.Duration // between two reports of the pools
	Workers         int           // how many orders of a type are looked at at a time
	Log             *slog.Logger
}

// Add adds the worker to the controllers that m runs.
func Add(m ctrl.Manager, o Options) error {
	reporter := NewReporter(o, m.GetAPIReader(), m.GetClient())
	if err := m.Add(reporter); err != nil {
		return err
	}
	live, write := m.GetAPIReader(), m.GetClient()
	return errors.Join(
		add(m, "volumeworker", Volumes(o, live, write), reporter.hurry),
		add(m, "snapshotworker", Snapshots(o, live, write), reporter.hurry),
		add(m, "groupworker", Groups(o, live, write), reporter.hurry),
	)
}

func add[O v1alpha1.Ordered](m ctrl.Manager, name string, a *Agent[O], changed func()) error {
	a.changed = changed
	err := ctrl.NewControllerManagedBy(m).Named(name + "-begins").For(a.empty()).Complete(beginner[O]{a})
	if err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(m).Named(name).For(a.empty()).
		WithOptions(controller.Options{MaxConcurrentReconciles: a.Workers, RateLimiter: pauses()}).Complete(a)
}

// pauses are those between two calls about an order that goes on: what takes longer than a call is seen soon after its
// end.
func pauses() workqueue.TypedRateLimiter[ctrl.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](100*time.Millisecond, 5*time.Second)
}

// hand asks the driver for things of one type.
type hand[O v1alpha1.Ordered] interface {
	create(ctx context.Context, o O) outcome
	adapt(ctx context.Context, o O) outcome
	remove(ctx context.Context, o O) error
}

// Agent carries out the orders of one type for a node.
type Agent[O v1alpha1.Ordered] struct {
	Options
	hand    hand[O]
	live    client.Reader // reads past the cache
	write   client.Client
	empty   func() O
	changed func() // is called after each change of what is on the node
}

// Reconcile looks at one order.
func (a *Agent[O]) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	o, err := a.read(ctx, request.NamespacedName)
	if err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if err := a.begin(ctx, o); err != nil {
		return again(err)
	}
	what := a.next(o)
	if what == nothing {
		return ctrl.Result{}, nil
	}
	return a.tell(ctx, o, a.carryOut(ctx, o, what))
}

// next decides about an order: one of another node is none.
func (a *Agent[O]) next(o O) step {
	if spec, _ := o.Ordered(); spec.Node != a.Node {
		return nothing
	}
	return next(o)
}

// begin says that something of an order may be on the node from now on, if that is the next step.
func (a *Agent[O]) begin(ctx context.Context, o O) error {
	if a.next(o) != begin {
		return nil
	}
	_, status := o.Ordered()
	status.State, status.Message = v1alpha1.StateWorking, ""
	return a.write.Status().Update(ctx, o)
}

// beginner begins orders while the Agent is at work on others: a worker that does not begin soon is taken by the master
// for one that does not run.
type beginner[O v1alpha1.Ordered] struct{ *Agent[O] }

// Reconcile looks at one order.
func (b beginner[O]) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	o, err := b.read(ctx, request.NamespacedName)
	if err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	return again(b.begin(ctx, o))
}

// read reads an order. One whose spec says more than this version knows is none that it can carry out: leaving out the
// source of a volume would make an empty one. Only its removal needs no more than its name.
func (a *Agent[O]) read(ctx context.Context, name types.NamespacedName) (O, error) {
	o := a.empty()
	kind, err := apiutil.GVKForObject(o, a.write.Scheme())
	if err != nil {
		return o, err
	}
	all := &unstructured.Unstructured{}
	all.SetGroupVersionKind(kind)
	if err := a.live.Get(ctx, name, all); err != nil {
		return o, err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(all.Object, o); err != nil {
		return o, err
	}
	wanted := map[string]any{"spec": all.Object["spec"]}
	err = runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(wanted, a.empty(), true)
	if spec, _ := o.Ordered(); err != nil && !spec.Delete {
		return o, fmt.Errorf("%s: this worker is older than the master and does not know all that it wants: %w", name, err)
	}
	return o, nil
}

// carryOut asks the driver.
func (a *Agent[O]) carryOut(ctx context.Context, o O, what step) outcome {
	ctx, cancel := context.WithTimeout(ctx, a.Timeout)
	defer cancel()
	switch what {
	case create:
		return a.hand.create(ctx, o)
	case adapt:
		return a.hand.adapt(ctx, o)
	case remove:
		if err := a.hand.remove(ctx, o); err != nil {
			return outcome{err: err}
		}
	case nothing, begin:
	}
	return outcome{state: v1alpha1.StateDeleted}
}

// tell writes what came of a step, and asks again later for what has not ended.
func (a *Agent[O]) tell(ctx context.Context, o O, done outcome) (ctrl.Result, error) {
	before := o.DeepCopyObject()
	report(o, done)
	if !equality.Semantic.DeepEqual(before, client.Object(o)) {
		if err := a.write.Status().Update(ctx, o); err != nil {
			return again(err)
		}
		a.changed()
	}
	if spec, status := o.Ordered(); status.Attempt != spec.Attempt {
		return ctrl.Result{}, fmt.Errorf("%s: %w", o.GetName(), done.err) // The queue waits longer each time.
	}
	return ctrl.Result{}, nil
}

// again looks anew after somebody else wrote first. What is gone needs no look.
func again(err error) (ctrl.Result, error) {
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: 100 * time.Millisecond}, nil
	}
	return ctrl.Result{}, client.IgnoreNotFound(err)
}

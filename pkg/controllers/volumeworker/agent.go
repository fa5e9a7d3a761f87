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
	"github.com/stowage-csi/stowage/pkg/uses"
)

// Driver is the node's own driver. csiclient.Client implements it.
type Driver interface {
	volumeDriver
	snapshotDriver
	groupDriver
	Pools(ctx context.Context) ([]pools.Pool, error)
	Use(ctx context.Context, handle string) (uses.Use, error)
}

// Options of the worker.
type Options struct {
	Node, Namespace string // name of the node, and namespace of its objects
	Driver          Driver
	Timeout         time.Duration // of each call to the driver
	Period          time.Duration // between two reports of the pools
	Workers         int           // orders of a type that are handled concurrently
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
		ctrl.NewControllerManagedBy(m).Named("useworker").For(&v1alpha1.LocalVolume{}).
			WithOptions(controller.Options{MaxConcurrentReconciles: o.Workers}).
			Complete(NewUseReporter(o, m.GetClient(), write)),
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

// pauses returns the limiter for retries of an order in progress: the end of work that takes longer than a call is
// noticed soon.
func pauses() workqueue.TypedRateLimiter[ctrl.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](100*time.Millisecond, 5*time.Second)
}

// hand makes the driver carry out orders of one type.
type hand[O v1alpha1.Ordered] interface {
	create(ctx context.Context, o O) outcome
	adapt(ctx context.Context, o O) outcome
	remove(ctx context.Context, o O) error
}

// Agent carries out the orders of one type for a node.
type Agent[O v1alpha1.Ordered] struct {
	Options
	hand    hand[O]
	live    client.Reader // bypasses the cache
	write   client.Client
	empty   func() O
	changed func() // called after each change on the node
}

// freshFor is how long after it began to read an order a worker may call the driver.
const freshFor = 10 * time.Second

// Reconcile reconciles one order. A process that was stopped after it had read the order does not call the driver: if
// another worker has carried the order out, and its deletion, the call would create what no object knows.
func (a *Agent[O]) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	began := time.Now()
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
	if time.Since(began) > freshFor {
		return ctrl.Result{RequeueAfter: 100 * time.Millisecond}, nil
	}
	return a.tell(ctx, o, a.carryOut(ctx, o, what))
}

// next returns the next step for an order. There is none for an order of another node.
func (a *Agent[O]) next(o O) step {
	if spec, _ := o.Ordered(); spec.Node != a.Node {
		return nothing
	}
	return next(o)
}

// begin writes the state Working if that is the next step: from now on parts of the order may be on the node.
func (a *Agent[O]) begin(ctx context.Context, o O) error {
	if a.next(o) != begin {
		return nil
	}
	_, status := o.Ordered()
	status.State, status.Message = v1alpha1.StateWorking, ""
	return a.write.Status().Update(ctx, o)
}

// beginner begins orders while the Agent works on others. The master assumes that a worker that does not begin soon is
// not running.
type beginner[O v1alpha1.Ordered] struct{ *Agent[O] }

// Reconcile reconciles one order.
func (b beginner[O]) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	o, err := b.read(ctx, request.NamespacedName)
	if err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	return again(b.begin(ctx, o))
}

// read reads an order. It fails if the spec has fields that this version does not know: ignoring a volume's source, for
// example, would create an empty volume. A deletion needs only the name.
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

// carryOut calls the driver for a step.
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

// tell writes the result of a step, and retries later if the attempt has not ended.
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
		return ctrl.Result{}, fmt.Errorf("%s: %w", o.GetName(), done.err) // The queue increases the pause each time.
	}
	return ctrl.Result{}, nil
}

// again retries after another writer was first. It ignores an object that is gone.
func again(err error) (ctrl.Result, error) {
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: 100 * time.Millisecond}, nil
	}
	return ctrl.Result{}, client.IgnoreNotFound(err)
}

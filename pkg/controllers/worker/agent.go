package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/disks/report"
)

// pause is the time before a process that does not answer is asked again.
const pause = 2 * time.Second

// Disks is the process that opens disks.
type Disks interface {
	// State returns the state as soon as its revision differs from after, or after a timeout.
	State(ctx context.Context, after string) (report.State, error)
	// Want passes on the offers and requested wipes. It fails with report.ErrOlder if another agent has read a newer
	// state.
	Want(ctx context.Context, w report.Wanted) error
}

// Options of the agent.
type Options struct {
	Node, Namespace string // of the NodeStorage, which has the node's name
	Disks           Disks
	Log             *slog.Logger
}

// Add adds the agent to m. The cache of m must only have the node's NodeStorage.
func Add(m ctrl.Manager, o Options) error {
	a := &agent{Options: o, client: m.GetClient(), live: m.GetAPIReader(), changes: make(chan event.GenericEvent, 1)}
	if err := m.Add(a); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(m).Named("worker").For(&v1alpha1.NodeStorage{}).
		WithOptions(controller.Options{RateLimiter: pauses()}).
		WatchesRawSource(source.Channel(a.changes, handler.Funcs{GenericFunc: a.enqueue})).Complete(a)
}

// pauses returns the limiter for retries after an error. The default grows to a quarter of an hour, in which a worker
// would pass nothing on although the API server is back.
func pauses() workqueue.TypedRateLimiter[ctrl.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](100*time.Millisecond, time.Minute)
}

// agent synchronizes the node's disks and its NodeStorage.
type agent struct {
	Options
	client  client.Client
	live    client.Reader // bypasses the cache
	changes chan event.GenericEvent
	// isCurrent reports whether the cache is at least as new as the API server was once in the life of this process.
	isCurrent bool
}

// Start polls for changes of the disks until the context ends.
func (a *agent) Start(ctx context.Context) error {
	for after := ""; ctx.Err() == nil; {
		state, err := a.Disks.State(ctx, after)
		if err != nil && ctx.Err() == nil {
			a.Log.Warn("the process that opens disks does not answer", "error", err)
			state.Revision = ""
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
		}
		if err != nil || state.Revision != after {
			after = state.Revision
			select {
			case a.changes <- event.GenericEvent{}:
			case <-ctx.Done():
			}
		}
	}
	return nil
}

func (a *agent) enqueue(_ context.Context, _ event.GenericEvent,
	q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: a.Namespace, Name: a.Node}})
}

// Reconcile passes the spec to the disks, and the disks' state to the API server. The spec comes first, so that no
// status calls a volume available that the spec offers.
func (a *agent) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	if request.Name != a.Node || request.Namespace != a.Namespace {
		return ctrl.Result{}, nil
	}
	object := &v1alpha1.NodeStorage{}
	if err := a.client.Get(ctx, request.NamespacedName, object); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err) // The master creates it.
	}
	if err := a.catchUp(ctx, object); err != nil {
		return ctrl.Result{}, err
	}
	if !a.isCurrent {
		return ctrl.Result{RequeueAfter: time.Second}, nil
	}
	passed := a.pass(ctx, object)
	if errors.Is(passed, report.ErrOlder) { // The cache is behind, and so would be a status.
		a.Log.Warn("another agent of this node is ahead", "error", passed)
		return ctrl.Result{RequeueAfter: time.Second}, nil
	}
	after := a.ask(ctx, object.Status, passed)
	if equality.Semantic.DeepEqual(object.Status, after) {
		return ctrl.Result{}, nil
	}
	changed := object.DeepCopy()
	changed.Status = after
	// A CRD of an earlier version drops new fields. It must not refuse the others with them.
	err := a.client.Status().Update(ctx, changed, client.FieldValidation(metav1.FieldValidationWarn))
	if apierrors.IsConflict(err) { // The spec has changed: pass it on first.
		return ctrl.Result{RequeueAfter: time.Second}, nil
	}
	return ctrl.Result{}, client.IgnoreNotFound(err)
}

// catchUp compares an object of the cache with the API server's, until they once agree. The cache of a new process may
// begin with an older state than the last one that an earlier process passed on. A wipe that was withdrawn in between
// would begin anew, on a volume that may be in use by now. After its first state, a cache does not go back.
func (a *agent) catchUp(ctx context.Context, cached *v1alpha1.NodeStorage) error {
	if a.isCurrent {
		return nil
	}
	now, err := a.newest(ctx)
	a.isCurrent = err == nil && now != nil && now.UID == cached.UID && now.Generation <= cached.Generation
	return err
}

// newest reads the node's NodeStorage past the cache. It returns nil if there is none.
func (a *agent) newest(ctx context.Context) (*v1alpha1.NodeStorage, error) {
	var now v1alpha1.NodeStorageList // The agent has no right to get one.
	err := a.live.List(ctx, &now, client.InNamespace(a.Namespace), client.MatchingFields{"metadata.name": a.Node})
	if err != nil {
		return nil, fmt.Errorf("read the NodeStorage of node %s past the cache: %w", a.Node, err)
	}
	if len(now.Items) != 1 {
		return nil, nil
	}
	return &now.Items[0], nil
}

// pass passes on the spec. If that is refused as older, it is passed on again once a read past the cache proves that it
// is the newest, as of a new object, or after a restore of the cluster's objects.
func (a *agent) pass(ctx context.Context, object *v1alpha1.NodeStorage) error {
	w := wanted(object)
	err := a.Disks.Want(ctx, w)
	if !errors.Is(err, report.ErrOlder) {
		return err
	}
	now, looked := a.newest(ctx)
	if now == nil || now.UID != object.UID || now.Generation != object.Generation {
		return errors.Join(err, looked)
	}
	w.Source.IsNewest = true
	return a.Disks.Want(ctx, w)
}

// ask returns the new status, after the spec was passed on with the error.
func (a *agent) ask(ctx context.Context, before v1alpha1.NodeStorageStatus, err error) v1alpha1.NodeStorageStatus {
	if err == nil {
		var state report.State
		if state, err = a.Disks.State(ctx, ""); err == nil {
			return status(before, state)
		}
	}
	return unreachable(before, err)
}

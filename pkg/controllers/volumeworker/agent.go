package volumeworker

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/controllers/csiclient"
	"github.com/stowage-csi/stowage/pkg/pools"
)

// Driver is the node's own driver, which csiclient.Client asks.
type Driver interface {
	Place(ctx context.Context) (map[string]string, error)
	Make(ctx context.Context, w csiclient.Wanted) (csiclient.Volume, error)
	Expand(ctx context.Context, handle string, required, limit int64) (csiclient.Expansion, error)
	Delete(ctx context.Context, handle string) error
	Pools(ctx context.Context) ([]pools.Pool, error)
}

// Options of the worker.
type Options struct {
	Node, Namespace string // of the node, and of its NodeStorage and LocalVolumes
	Driver          Driver
	Timeout         time.Duration // of a call to the driver
	Period          time.Duration // between two reports of the pools
	Workers         int           // how many volumes are looked at at a time
	Log             *slog.Logger
}

// Add adds the worker to the controllers that m runs.
func Add(m ctrl.Manager, o Options) error {
	reporter := NewReporter(o, m.GetAPIReader(), m.GetClient())
	if err := m.Add(reporter); err != nil {
		return err
	}
	agent := New(o, m.GetAPIReader(), m.GetClient())
	agent.changed = reporter.hurry
	return ctrl.NewControllerManagedBy(m).Named("volumeworker").For(&v1alpha1.LocalVolume{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: o.Workers}).Complete(agent)
}

// Agent makes the volumes of a node.
type Agent struct {
	Options
	live    client.Reader // reads past the cache
	write   client.Client
	changed func() // is called after each change of a volume
}

// New makes an Agent, which is told of each change of a LocalVolume by Reconcile.
func New(o Options, live client.Reader, write client.Client) *Agent {
	return &Agent{Options: o, live: live, write: write, changed: func() {}}
}

// Reconcile looks at one LocalVolume.
func (a *Agent) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	o := &v1alpha1.LocalVolume{}
	if err := a.live.Get(ctx, request.NamespacedName, o); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if o.Spec.Node != a.Node {
		return ctrl.Result{}, nil
	}
	what := next(o)
	if what == begin {
		o.Status.State, o.Status.Message = v1alpha1.VolumeWorking, ""
		if err := a.write.Status().Update(ctx, o); err != nil {
			return again(err)
		}
		what = next(o)
	}
	if what == nothing {
		return ctrl.Result{}, nil
	}
	done := a.carryOut(ctx, o, what)
	return a.tell(ctx, o, done)
}

// carryOut asks the driver.
func (a *Agent) carryOut(ctx context.Context, o *v1alpha1.LocalVolume, what step) outcome {
	ctx, cancel := context.WithTimeout(ctx, a.Timeout)
	defer cancel()
	switch what {
	case create:
		return a.create(ctx, o)
	case expand:
		grown, err := a.Driver.Expand(ctx, o.Name, o.Spec.RequiredBytes, o.Spec.LimitBytes)
		if err != nil {
			return outcome{err: err}
		}
		return outcome{state: v1alpha1.VolumeReady, bytes: grown.SizeBytes, nodeExpansion: grown.NodeExpansion}
	case remove:
		if err := a.Driver.Delete(ctx, o.Name); err != nil {
			return outcome{err: err}
		}
		return outcome{state: v1alpha1.VolumeDeleted}
	case nothing, begin, agree:
	}
	return outcome{state: o.Status.State}
}

func (a *Agent) create(ctx context.Context, o *v1alpha1.LocalVolume) outcome {
	want := wanted(&o.Spec)
	var err error
	if want.Segments, err = a.Driver.Place(ctx); err != nil {
		return outcome{err: err, isOpen: true}
	}
	made, err := a.Driver.Make(ctx, want)
	switch {
	case err != nil && csiclient.IsAbsent(err):
		return outcome{state: v1alpha1.VolumeAbsent, err: err}
	case err != nil:
		return outcome{err: err}
	case made.Handle != o.Name:
		return outcome{err: fmt.Errorf("the driver made the volume %q for the name %q, which must be %q: the driver and "+
			"the master are of different versions", made.Handle, o.Spec.VolumeName, o.Name)}
	}
	return outcome{state: v1alpha1.VolumeReady, bytes: made.SizeBytes}
}

// tell writes what came of a step, and asks again later for what has not ended.
func (a *Agent) tell(ctx context.Context, o *v1alpha1.LocalVolume, done outcome) (ctrl.Result, error) {
	after := report(o, done)
	if !equality.Semantic.DeepEqual(after, o.Status) {
		o.Status = after
		if err := a.write.Status().Update(ctx, o); err != nil {
			return again(err)
		}
		a.changed()
	}
	if after.Attempt != o.Spec.Attempt {
		return ctrl.Result{}, fmt.Errorf("the volume %s: %w", o.Name, done.err) // The queue waits longer each time.
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

package localvolume

import (
	"context"
	"fmt"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/backends"
)

// adaptation is a call that makes the node change a volume.
type adaptation struct {
	*Master
	handle  string
	isDone  func(o *v1alpha1.LocalVolume) bool // whether the volume is as requested
	want    func(o *v1alpha1.LocalVolume)      // writes the request, and no other pending change, into the spec
	attempt int64                              // the attempt that this call requested
}

// run returns the volume once it is as requested.
func (a *adaptation) run(ctx context.Context) (*v1alpha1.LocalVolume, error) {
	for {
		o, err := a.volumes.get(ctx, a.handle)
		if err != nil {
			return nil, err
		}
		if isDone, err := a.goOn(ctx, o); isDone || err != nil {
			return o, err
		}
	}
}

// goOn takes the next step for the LocalVolume, which is nil if none exists, and waits for the worker. If it returns
// false and no error, the caller must read the object again.
func (a *adaptation) goOn(ctx context.Context, o *v1alpha1.LocalVolume) (isDone bool, err error) {
	switch {
	case o == nil || sizeOf(o) == 0 || isOver(o):
		return false, a.volumes.checkUsable(a.handle, o)
	case o.Spec.Delete:
		return false, backends.Errorf(backends.Busy, "the volume %s is being deleted", a.handle)
	case a.isDone(o):
		return true, nil
	case !hasEnded(o):
		return false, a.volumes.await(ctx, o)
	case a.attempt == o.Spec.Attempt:
		return false, a.refused(o)
	case a.attempt != 0:
		return false, backends.Errorf(backends.Busy, "the volume %s was changed by another call beside this one: ask again",
			a.handle)
	}
	a.want(o)
	a.attempt, err = a.volumes.again(ctx, o)
	return false, err
}

// refused returns the error of the node's driver for a change. An error without a Kind stays without one: it is final
// for csi-resizer, so the claim can be changed again.
func (m *Master) refused(o *v1alpha1.LocalVolume) error {
	if r := o.Status.Refusal; r != nil && r.Reason == "Internal" {
		return fmt.Errorf("node %s: %s", o.Spec.Node, r.Message)
	}
	return m.volumes.whyRefused(o)
}

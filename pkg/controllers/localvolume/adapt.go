package localvolume

import (
	"context"
	"fmt"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/backends"
)

// adaptation is a call that has the node change a volume.
type adaptation struct {
	*Master
	handle  string
	isDone  func(o *v1alpha1.LocalVolume) bool // whether the volume is as this call wants it
	want    func(o *v1alpha1.LocalVolume)      // writes that, and nothing else that is not so yet, into the spec
	attempt int64                              // that this call has asked for
}

// run returns the volume once it is as it is wanted.
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

// goOn does what the LocalVolume asks for, nil for none, and waits for the worker. Unless it is done, and without an
// error, the object is to be looked at again.
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

// refused is what the node's driver said of a change. An error of no Kind stays one: it is final for csi-resizer, so
// that the claim can be changed again.
func (m *Master) refused(o *v1alpha1.LocalVolume) error {
	if r := o.Status.Refusal; r != nil && r.Reason == "Internal" {
		return fmt.Errorf("node %s: %s", o.Spec.Node, r.Message)
	}
	return m.volumes.whyRefused(o)
}

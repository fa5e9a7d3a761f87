package localvolume

import (
	"context"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// Delete has the node remove the volume and its data.
func (m *Master) Delete(ctx context.Context, handle string) error {
	d := &deletion{Master: m, handle: handle}
	for {
		o, err := m.get(ctx, handle)
		if err != nil {
			return err
		}
		if isOver, err := d.goOn(ctx, o); isOver || err != nil {
			return err
		}
	}
}

// deletion is a call of Delete.
type deletion struct {
	*Master
	handle string
	isSeen bool // whether this call has seen the volume
	asked  bool // whether the worker was asked for the deletion since this call began
}

// goOn does what the LocalVolume asks for, nil for none, and waits for the worker. Unless the call is over, the object
// is to be looked at again.
func (d *deletion) goOn(ctx context.Context, o *v1alpha1.LocalVolume) (isOver bool, err error) {
	switch {
	case o == nil && d.isSeen:
		return true, nil
	case o == nil:
		return true, notFound(d.handle)
	case isGone(o):
		d.isSeen = d.isSeen || o.DeletionTimestamp == nil
		_, err := d.withdraw(ctx, o)
		return false, err
	case hasEnded(o) && d.asked:
		return true, refusal(o)
	case hasEnded(o) || !o.Spec.Delete:
		o.Spec.Delete = true
		attempt, err := d.again(ctx, o)
		d.asked = attempt != 0
		d.isSeen = d.isSeen || d.asked
		return false, err
	}
	d.asked, d.isSeen = true, true
	return false, d.await(ctx, o)
}

package localvolume

import (
	"context"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// Delete makes the node remove the volume and its data.
func (m *Master) Delete(ctx context.Context, handle string) error {
	return remove(ctx, &m.volumes, handle)
}

// DeleteSnapshot makes the node remove the snapshot. A member of a group is deleted only with its group.
func (m *Master) DeleteSnapshot(ctx context.Context, handle string) error {
	err := remove(ctx, &m.snapshots, handle)
	if !backends.Is(err, backends.NotFound) {
		return err
	}
	switch found, looked := m.member(ctx, handle); {
	case backends.Is(looked, backends.NotFound):
		return err
	case looked != nil:
		return looked
	default:
		return backends.Errorf(backends.InUse, "the snapshot %s belongs to the group %s: delete that", handle, found.Group)
	}
}

func remove[O order](ctx context.Context, s *orders[O], handle string) error {
	d := &deletion[O]{orders: s, handle: handle}
	for {
		o, err := s.get(ctx, handle)
		if err != nil {
			return err
		}
		if isOver, err := d.goOn(ctx, o); isOver || err != nil {
			return err
		}
	}
}

// deletion is a call that deletes a volume, a snapshot or a group.
type deletion[O order] struct {
	*orders[O]
	handle string
	isSeen bool // this call has seen it
	asked  bool // the worker was asked for the deletion since this call began
}

// goOn takes the next step for the order, which is nil if none exists, and waits for the worker. If it returns false
// and no error, the caller must read the object again.
func (d *deletion[O]) goOn(ctx context.Context, o O) (isOver bool, err error) {
	var none O
	switch {
	case o == none && d.isSeen:
		return true, nil
	case o == none:
		return true, d.notFound(d.handle)
	case isGone(o):
		d.isSeen = d.isSeen || o.GetDeletionTimestamp() == nil
		_, err := d.withdraw(ctx, o)
		return false, err
	case hasEnded(o) && d.asked:
		return true, d.refused(o)
	case hasEnded(o) || !isUnwanted(o):
		spec, _ := o.Ordered()
		spec.Delete = true
		attempt, err := d.again(ctx, o)
		d.asked = attempt != 0
		d.isSeen = d.isSeen || d.asked
		return false, err
	}
	d.asked, d.isSeen = true, true
	return false, d.await(ctx, o)
}

// refused returns the driver's reason for not deleting. NotFound and Unsupported become Unusable: they do not end the
// deletion while the order's status contradicts them.
func (d *deletion[O]) refused(o O) error {
	why := d.whyRefused(o)
	if backends.Is(why, backends.NotFound) || backends.Is(why, backends.Unsupported) {
		return backends.Errorf(backends.Unusable, "the %s %s is not deleted: %w", d.word, d.handle, why)
	}
	return why
}

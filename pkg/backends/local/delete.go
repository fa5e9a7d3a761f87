package local

import (
	"context"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// retainedTime is the format of the time in the name of a retained volume: it sorts and is valid in a file name.
const retainedTime = "20060102T150405.000000000Z"

// Delete removes the volume and its data, or moves it to retained/ when the class says so. Snapshots and clones are
// copies, so nothing depends on the volume. Delete also ends work that is creating the volume, because the handle
// follows from the name, and leaves nothing of it. Kinds: NotFound; InUse, naming the node; Busy.
func (e *engine) Delete(ctx context.Context, handle string) (err error) {
	defer annotate(&err, "delete volume", handle)
	if err := e.making.volumes.Stop(ctx, handle); err != nil {
		return err
	}
	v, err := e.stock.volumes.toDelete(handle)
	if err != nil {
		return err
	}
	return e.removeVolume(ctx, v)
}

// removeVolume removes a volume and its data, or moves it to retained/ when its record says so. All checks that protect
// data in use, or data that is being copied, are here. Kinds: NotFound when it was deleted meanwhile; InUse, naming the
// node; Busy.
func (e *engine) removeVolume(ctx context.Context, v *volume) error {
	release, err := v.own(ctx)
	if err != nil {
		return err
	}
	defer release()
	if v.inUse.Load() {
		return backends.Errorf(backends.InUse, "it is in use on node %q: unstage it there first", e.node)
	}
	if err := e.forgetUse(v); err != nil {
		return err
	}
	if err := e.deleteOrRetain(v); err != nil {
		return err
	}
	v.gone.Store(true)
	e.stock.volumes.remove(v.record.Load().Handle)
	return nil
}

func (e *engine) deleteOrRetain(v *volume) error {
	r := v.record.Load()
	if r.OnDelete == deleteData {
		err := v.pool.delete(v.dir, v.taken)
		if err == nil {
			v.pool.unlimit(r.Project)
		}
		return err
	}
	name := e.now().UTC().Format(retainedTime) + "-" + r.Handle
	if err := v.pool.retain(v.dir, name); err != nil {
		return err
	}
	v.pool.ledger.give(v.taken)
	e.log.Info("a deleted volume is retained", "pool", v.pool.name, "volume", r.Handle, "folder", retainedFolder+"/"+name)
	return nil
}

// DeleteSnapshot removes a snapshot, or ends the work that is creating it. Kinds: NotFound; InUse for a member of a
// group; Busy.
func (e *engine) DeleteSnapshot(ctx context.Context, handle string) (err error) {
	defer annotate(&err, "delete snapshot", handle)
	if err := e.making.snapshots.Stop(ctx, handle); err != nil {
		return err
	}
	s, err := e.stock.snapshots.toDelete(handle)
	if err != nil {
		return err
	}
	return e.stock.removeSnapshot(ctx, s)
}

// removeSnapshot removes a snapshot. Kinds: NotFound when it was deleted meanwhile; InUse for a member of a group; Busy
// while a volume is made from it.
func (s *stock) removeSnapshot(ctx context.Context, one *snapshot) error {
	if one.group != "" {
		return backends.Errorf(backends.InUse, "it belongs to group %s: delete the group", one.group)
	}
	release, err := one.own(ctx)
	if err != nil {
		return err
	}
	defer release()
	if err := one.pool.delete(one.dir, one.pool.storage.cost(one.record.SizeBytes)); err != nil {
		return err
	}
	one.gone.Store(true)
	s.snapshots.remove(one.record.Handle)
	return nil
}

// DeleteGroup removes a group with all its snapshots, or ends the work that is creating it. Kinds: NotFound; Busy.
func (e *grouping) DeleteGroup(ctx context.Context, handle string) (err error) {
	defer annotate(&err, "delete group", handle)
	if err := e.making.groups.Stop(ctx, handle); err != nil {
		return err
	}
	g, err := e.stock.groups.toDelete(handle)
	if err != nil {
		return err
	}
	return e.stock.removeGroup(ctx, g)
}

// removeGroup removes a group with its members. Kinds: NotFound when it was deleted meanwhile; Busy while a volume is
// made from a member.
func (s *stock) removeGroup(ctx context.Context, g *group) error {
	release, err := g.ownAll(ctx)
	if err != nil {
		return err
	}
	defer release()
	if err := g.pool.delete(g.dir, g.record.cost()); err != nil {
		return err
	}
	g.pool.index.drop(g.record.handles()...)
	g.gone.Store(true)
	s.groups.remove(g.record.Handle)
	for _, m := range g.members {
		m.gone.Store(true)
		s.snapshots.remove(m.record.Handle)
	}
	return nil
}

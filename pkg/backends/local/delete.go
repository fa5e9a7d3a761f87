package local

import (
	"context"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// retainedTime is how the time is written in the name of a retained volume: it sorts, and is fit for a file
// name.
const retainedTime = "20060102T150405.000000000Z"

// Delete removes the volume and its data, or moves it to retained/ when the class says so. Snapshots and
// clones are copies, so that nothing depends on it. The handle tells the name: the work that is to become the
// volume ends too, and leaves nothing. Kinds: NotFound; InUse, naming the node; Busy.
func (e *engine) Delete(ctx context.Context, handle string) (err error) {
	defer annotate(&err, "delete volume", handle)
	if err := e.making.volumes.Stop(ctx, handle); err != nil {
		return err
	}
	v, err := e.stock.volumes.toDelete(handle)
	if err != nil {
		return err
	}
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
	e.stock.volumes.remove(handle)
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

package crash

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/stowage-csi/stowage/tests/orchestrator"
)

// lifecycle takes one volume through its life, with occasional extra events.
func (w *worker) lifecycle() error {
	all := kinds()
	v, err := w.provision(all[(w.id+w.lifecycles)%len(all)], nil)
	if err != nil {
		return err
	}
	if err := w.write(v); err != nil {
		return err
	}
	if w.chance(40) {
		if err := w.branch(v); err != nil {
			return err
		}
	}
	for _, now := range []struct {
		percent int
		do      func(*volume) error
	}{{35, w.expand}, {30, w.write}, {30, w.mountAgain}, {100, w.verify}} {
		if w.chance(now.percent) {
			if err := now.do(v); err != nil {
				return err
			}
		}
	}
	return w.deleteAll()
}

// branch takes a snapshot, continues to write, and sometimes restores the snapshot.
func (w *worker) branch(v *volume) error {
	s, err := w.takeSnapshot(v)
	if err != nil {
		return err
	}
	if err := w.write(v); err != nil {
		return err
	}
	if !w.chance(60) {
		return nil
	}
	restored, err := w.provision(s.kind, s)
	if err != nil {
		return err
	}
	if err := w.write(restored); err != nil {
		return err
	}
	return w.verify(restored)
}

// provision creates a volume, empty or from a snapshot, mounts it and checks its content.
func (w *worker) provision(k kind, from *snapshot) (*volume, error) {
	claim := orchestrator.Claim{Name: w.name(k.name), Bytes: k.bytes, Parameters: k.parameters, Block: k.block}
	v := &volume{kind: k, data: contents{}}
	if from != nil {
		claim.Snapshot, claim.Bytes = from.ID, max(claim.Bytes, from.Bytes)
		v.data = maps.Clone(from.data)
	}
	if err := w.call("create", claim.Name,
		func(ctx context.Context) error { return w.create(ctx, v, claim) }); err != nil {
		return nil, err
	}
	if err := w.mount(v); err != nil {
		return nil, err
	}
	return v, w.verify(v)
}

// create creates the volume and adds it to the model. A retry must return the same volume.
func (w *worker) create(ctx context.Context, v *volume, claim orchestrator.Claim) error {
	made, err := w.client.Provision(ctx, claim)
	if err != nil {
		return err
	}
	if v.Volume == nil {
		v.Volume = made
		w.volumes = append(w.volumes, v)
	}
	if made.ID != v.ID {
		return fmt.Errorf("created again it has the ID %s, and had %s", made.ID, v.ID)
	}
	return nil
}

// mount stages and publishes the volume unless that is already done.
func (w *worker) mount(v *volume) error {
	if !v.staged {
		if err := w.call("stage", v.Claim.Name,
			func(ctx context.Context) error { return w.client.Stage(ctx, v.Volume) }); err != nil {
			return err
		}
		v.staged = true
	}
	if !v.published {
		if err := w.call("publish", v.Claim.Name,
			func(ctx context.Context) error { return w.client.Publish(ctx, v.Volume) }); err != nil {
			return err
		}
		v.published = true
	}
	return nil
}

// unmount reverts mount.
func (w *worker) unmount(v *volume) error {
	if v.published {
		if err := w.call("unpublish", v.Claim.Name,
			func(ctx context.Context) error { return w.client.Unpublish(ctx, v.Volume) }); err != nil {
			return err
		}
		v.published = false
	}
	if v.staged {
		if err := w.call("unstage", v.Claim.Name,
			func(ctx context.Context) error { return w.client.Unstage(ctx, v.Volume) }); err != nil {
			return err
		}
		v.staged = false
	}
	return nil
}

// mountAgain unmounts and mounts the volume, so that its data is read from the disk.
func (w *worker) mountAgain(v *volume) error {
	if err := w.unmount(v); err != nil {
		return err
	}
	return w.mount(v)
}

// takeSnapshot takes a snapshot, of a mounted volume if its kind allows that.
func (w *worker) takeSnapshot(v *volume) (*snapshot, error) {
	var parameters map[string]string
	switch {
	case v.kind.snapshotWhile == nil || w.chance(30):
		if err := w.unmount(v); err != nil {
			return nil, err
		}
	default:
		parameters = v.kind.snapshotWhile
	}
	s := &snapshot{kind: v.kind, data: maps.Clone(v.data)}
	name := w.name("snapshot")
	err := w.call("snapshot", name+" of "+v.Claim.Name, func(ctx context.Context) error {
		made, err := w.client.Snapshot(ctx, v.Volume, name, parameters)
		if err != nil {
			return err
		}
		if s.Snapshot == nil {
			s.Snapshot = made
			w.snapshots = append(w.snapshots, s)
		}
		if made.ID != s.ID {
			return fmt.Errorf("taken again it has the ID %s, and had %s", made.ID, s.ID)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return s, w.mount(v)
}

// expand grows the volume by half, mounted if possible.
func (w *worker) expand(v *volume) error {
	before, err := v.size()
	if err != nil {
		return err
	}
	if !v.kind.growsWhile {
		if err := w.unmount(v); err != nil {
			return err
		}
	}
	bytes := v.Bytes + v.Bytes/2
	err = w.call("expand", v.Claim.Name, func(ctx context.Context) error {
		return w.client.Expand(ctx, v.Volume, bytes, v.published)
	})
	if err != nil {
		return err
	}
	if err := w.mount(v); err != nil {
		return err
	}
	return w.do("see the growth of", v.Claim.Name, func(context.Context) error { return v.grown(before, bytes/3) })
}

// verifyAll checks all existing objects: each volume's data, and each snapshot's data in a volume restored from it.
func (w *worker) verifyAll() error {
	w.finishing = true
	for _, v := range w.volumes {
		if err := w.mount(v); err != nil {
			return err
		}
		if err := w.verify(v); err != nil {
			return err
		}
	}
	for _, s := range w.snapshots {
		if _, err := w.provision(s.kind, s); err != nil {
			return err
		}
	}
	return nil
}

// deleteAll deletes all existing objects, volumes before or after their snapshots.
func (w *worker) deleteAll() error {
	steps := []func() error{w.deleteVolumes, w.deleteSnapshots}
	if w.chance(50) {
		slices.Reverse(steps)
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (w *worker) deleteVolumes() error {
	for len(w.volumes) > 0 {
		v := w.volumes[0]
		if err := w.unmount(v); err != nil {
			return err
		}
		if err := w.call("delete", v.Claim.Name,
			func(ctx context.Context) error { return w.client.Delete(ctx, v.Volume) }); err != nil {
			return err
		}
		w.volumes = w.volumes[1:]
	}
	return nil
}

func (w *worker) deleteSnapshots() error {
	for len(w.snapshots) > 0 {
		s := w.snapshots[0]
		if err := w.call("forget", s.Name,
			func(ctx context.Context) error { return w.client.Forget(ctx, s.Snapshot) }); err != nil {
			return err
		}
		w.snapshots = w.snapshots[1:]
	}
	return nil
}

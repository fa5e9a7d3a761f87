package node

import (
	"context"
	"os"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node/mount"
	"github.com/stowage-csi/stowage/pkg/node/setup"
	"github.com/stowage-csi/stowage/pkg/safepath"
)

// put records the publication before it is mounted.
func (p *publishing) put(context.Context) error {
	if before, ok := p.record.Publication(p.want.Target); ok && before == p.want {
		return nil
	}
	p.record = p.record.WithPublication(p.want)
	return p.service.ledger.Put(p.record)
}

// bind mounts the volume at the target, unless it is mounted there already: the mount is the mark.
func (p *publishing) bind(ctx context.Context) error {
	_, err := setup.Run(ctx, setup.Mountpoint{Mounted: p.settled}, p.build)
	return err
}

// settled reports whether the volume is mounted at the target as requested.
func (p *publishing) settled(context.Context) (bool, error) { return p.done, nil }

// build creates the target and mounts the volume there. If that fails, it removes the target that it created.
func (p *publishing) build(ctx context.Context) (didWork bool, err error) {
	created, err := p.show()
	if err == nil {
		return true, nil
	}
	if created {
		err = withCleanup(err, removeEmpty(p.want.Target))
	}
	p.service.drop(ctx, p.record.WithoutPublication(p.want.Target))
	return created, err
}

func (p *publishing) show() (created bool, err error) {
	target, err := safepath.OpenTarget(p.want.Target)
	if backends.Is(err, backends.NotFound) {
		// NotFound would say that the volume does not exist.
		return false, backends.Errorf(backends.Invalid, "the parent directory of the target must exist: %w", err)
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = target.Close() }() // opened for looking only
	if p.request.Use.Type == backends.Block {
		created, err = target.MakeFile(0o640)
	} else {
		created, err = target.MakeDir(0o750)
	}
	if err == nil && !created {
		err = checkHidesNothing(p.want.Target)
	}
	if err != nil {
		return created, err
	}
	_, err = mount.Bind(p.place, target, p.want.ReadOnly, p.proveStaged, p.request.MountOptions...)
	if backends.Is(err, backends.NotFound) { // as above
		err = backends.Errorf(backends.Unavailable, "%w", err)
	}
	return created, err
}

// proveStaged refuses what is not the staged volume. After the staging path was looked at, the files may have been
// given to a group, which can take hours. If the volume was unmounted meanwhile, the staging path shows an empty
// directory or file of the node's own disk, and the pod would write there. Kinds: InUse.
func (p *publishing) proveStaged(found mount.State) error {
	if found.SameRoot(p.staged) {
		return nil
	}
	return backends.Errorf(backends.InUse, "the volume was unmounted from %s while it was being published: "+
		"call NodeStageVolume again", p.place)
}

// checkHidesNothing refuses an existing target that holds data: a mount would hide the data, and Unpublish could not
// remove the target. Kinds: InUse.
func checkHidesNothing(target string) error {
	entries, err := os.ReadDir(target)
	switch info, look := os.Lstat(target); {
	case err == nil && len(entries) > 0:
		return backends.Errorf(backends.InUse,
			"the target %s holds %q and more: a mount would hide it; empty it or choose another path", target, entries[0].Name())
	case look == nil && info.Mode().IsRegular() && info.Size() > 0:
		return backends.Errorf(backends.InUse,
			"the target %s is a file with data: a mount would hide it; choose another path", target)
	}
	return nil
}

// withCleanup adds the error of a failed cleanup to the error that required it. Something is left behind then.
func withCleanup(err, cleanup error) error {
	if cleanup == nil {
		return err
	}
	return backends.Errorf(unfinished(kindOf(err)), "%w (and afterwards: %w)", err, cleanup)
}

package node

import (
	"context"
	"os"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node/mount"
	"github.com/stowage-csi/stowage/pkg/node/setup"
	"github.com/stowage-csi/stowage/pkg/safepath"
)

// put records the publication, before it is made.
func (p *publishing) put(context.Context) error {
	if before, ok := p.record.Publication(p.want.Target); ok && before == p.want {
		return nil
	}
	p.record = p.record.WithPublication(p.want)
	return p.service.ledger.Put(p.record)
}

// bind shows the volume at the target, unless it does already: the mount is the mark.
func (p *publishing) bind(ctx context.Context) error {
	_, err := setup.Run(ctx, setup.Mountpoint{Mounted: p.settled}, p.build)
	return err
}

// settled reports whether the volume shows at the target in the way that is asked for.
func (p *publishing) settled(context.Context) (bool, error) { return p.done, nil }

// build makes the target and shows the volume there. What it made goes again if that fails.
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
		// NotFound would say that there is no such volume.
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
	_, err = mount.Bind(p.place, target, p.want.ReadOnly, p.request.MountOptions...)
	return created, err
}

// checkHidesNothing refuses a target that was there before and holds data: a mount over it would hide the
// data, and Unpublish could not remove the target. Kinds: InUse.
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

// withCleanup adds what went wrong in cleaning up to the error that made it necessary. Something is left then.
func withCleanup(err, cleanup error) error {
	if cleanup == nil {
		return err
	}
	return backends.Errorf(unfinished(kindOf(err)), "%w (and afterwards: %w)", err, cleanup)
}

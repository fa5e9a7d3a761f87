package node

import (
	"context"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/mountoptions"
	"github.com/stowage-csi/stowage/pkg/node/ledger"
	"github.com/stowage-csi/stowage/pkg/node/mount"
)

// checkStaged checks that the volume is staged, and in a way that allows the request.
func (p *publishing) checkStaged(ctx context.Context) error {
	r, staged := p.request, p.record.Staged
	if staged == nil || staged.Path != r.StagingPath || staged.Pending {
		return p.notStaged()
	}
	if staged.Type != r.Use.Type {
		return backends.Errorf(backends.InUse, "it is staged at %s with access type %s: it cannot be published with %s",
			staged.Path, staged.Type, r.Use.Type)
	}
	if staged.ReadOnly && !p.want.ReadOnly {
		return backends.Errorf(backends.InUse, "it is staged at %s for reading only: it cannot be published for writing",
			staged.Path)
	}
	if err := p.checkOptions(*staged); err != nil {
		return err
	}
	p.place = placeOf(*staged)
	state, err := mount.Inspect(ctx, p.place)
	switch {
	case mount.Corrupted(err):
		return backends.Errorf(backends.InUse, "its mount at %s is corrupted: call NodeStageVolume again: %w", p.place, err)
	case err != nil:
		return err
	case !shows(state, *staged):
		return p.notStaged()
	}
	p.staged = state
	return nil
}

// checkOptions refuses options that a bind mount cannot have, and SELinux labels that the staged volume does not have.
// Other options of a filesystem were given when it was staged, and are not checked again.
func (p *publishing) checkOptions(staged ledger.Staging) error {
	if staged.Source.Kind == ledger.Directory {
		return mountoptions.Directory{}.Check("", p.request.MountOptions)
	}
	if labels := mount.SecurityLabels(p.request.MountOptions); labels != "" && labels != staged.Labels {
		return backends.Errorf(backends.InUse,
			"it is staged at %s with the SELinux labels %q: it cannot be published with %q", staged.Path, staged.Labels, labels)
	}
	return nil
}

func (p *publishing) notStaged() error {
	return backends.Errorf(backends.InUse, "volume %q is not staged at %s: call NodeStageVolume first", p.request.Volume,
		p.request.StagingPath)
}

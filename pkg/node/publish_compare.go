package node

import (
	"context"
	"strings"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node/ledger"
	"github.com/stowage-csi/stowage/pkg/node/mount"
)

// compare checks what is mounted at the target already.
func (p *publishing) compare(ctx context.Context) error {
	target := p.request.TargetPath
	before, recorded := p.record.Publication(target)
	recorded = recorded && !before.Adopted // An adopted publication is known by its mount.
	state, err := mount.Inspect(ctx, target)
	switch {
	case mount.Corrupted(err):
		return mount.Unmount(ctx, target)
	case err != nil || !state.Mounted:
		return err
	case !state.SameRoot(p.staged) && recorded:
		// The volume was staged again since, and the target shows the earlier mount.
		return mount.Unmount(ctx, target)
	case !state.SameRoot(p.staged):
		return backends.Errorf(backends.Exists, "something else is mounted at %s: unmount it, or choose another path", target)
	case !recorded:
		before = ledger.Publication{Target: target, Mode: p.want.Mode, ReadOnly: state.ReadOnly}
	}
	if before != p.want {
		return backends.Errorf(backends.Exists,
			"it is published at %s already with mode %s and read-only %t, and asked for with %s and %t: unpublish it first",
			target, before.Mode, before.ReadOnly, p.want.Mode, p.want.ReadOnly)
	}
	p.done = true
	return compareOptions(target, p.request.MountOptions)
}

// checkExclusive refuses a second target for a volume that may have only one.
func (p *publishing) checkExclusive(ctx context.Context) error {
	record, targets := p.service.livePublications(ctx, p.record.WithoutPublication(p.want.Target))
	for _, target := range targets {
		if samePath(target, p.want.Target) {
			p.record = p.record.WithoutPublication(target)
			continue
		}
		other, _ := record.Publication(target)
		if exclusive(other.Mode) || exclusive(p.want.Mode) {
			return backends.Errorf(backends.InUse, "it is published at %s already, and with mode %s at one target only",
				strings.Join(targets, ", "), other.Mode)
		}
	}
	return nil
}

// exclusive reports whether a volume in the mode may have only one target. That is true of all single-node modes except
// the one for many writers (CSI, NodePublishVolume, second table).
func exclusive(mode backends.AccessMode) bool {
	switch mode {
	case backends.SingleNodeWriter, backends.SingleNodeReaderOnly, backends.SingleNodeSingleWriter:
		return true
	case backends.SingleNodeMultiWriter, backends.MultiNodeReaderOnly, backends.MultiNodeSingleWriter,
		backends.MultiNodeMultiWriter:
	}
	return false
}

// checkShown refuses a target at which the pod would not see the mount.
func (p *publishing) checkShown(ctx context.Context) error {
	if p.done {
		return nil
	}
	return p.service.checkShown(ctx, p.want.Target)
}

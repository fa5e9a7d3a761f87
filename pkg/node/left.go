package node

import (
	"context"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node/mount"
)

// The kubelet forgets a mount whose state is uncertain when the next call for it fails with a final code, and then
// nobody ever takes it down. So a call fails with a final code only if nothing is left of it or of earlier calls.

// unfinished returns the Kind of a failure that leaves something behind: one after which the orchestrator retries.
func unfinished(kind backends.Kind) backends.Kind {
	if kind == backends.Busy || kind == backends.Exhausted {
		return kind
	}
	return backends.Unavailable
}

// stillUsed reports whether the backend notes the volume as in use because of an earlier call that left no record. Only
// Unstage ends that, because it checks whether something is mounted.
func (st *staging) stillUsed() bool {
	release := st.service.features.Release
	return release != nil && release.Used(context.Background(), st.request.Volume)
}

// staysStaged makes a failure of Stage non-final if the volume is still recorded at the staging path, or is in use. It
// keeps Exists for a finished staging: the error says that the volume is staged in another way, and its Kind is not
// final for Stage.
func (st *staging) staysStaged(err error) error {
	if err == nil {
		return nil
	}
	left := st.service.ledger.Get(st.request.Volume).Staged
	if left == nil && st.stillUsed() {
		return backends.Errorf(unfinished(kindOf(err)), "%w; the storage notes it as in use: unstage it, or stage it again",
			err)
	}
	if left == nil || left.Path != st.request.StagingPath || kindOf(err) == backends.Exists && !left.Pending {
		return err
	}
	return backends.Errorf(unfinished(kindOf(err)), "%w; what was made is left at %s: unstage it, or stage it again", err,
		left.Path)
}

// staysPublished makes a failure of Publish non-final if the volume still shows at the target as requested. The kubelet
// may forget what shows there in another way: Unstage refuses as long as it is there.
func (p *publishing) staysPublished(ctx context.Context, err error) error {
	if err == nil || kindOf(err) == backends.Exists {
		return err
	}
	record := p.service.ledger.Get(p.request.Volume)
	left, recorded := record.Publication(p.request.TargetPath)
	staged := record.Staged
	if !recorded || left != p.want || staged != nil &&
		(staged.Type != p.request.Use.Type || staged.Path != p.request.StagingPath) {
		return err
	}
	if mounted, look := mount.Mounted(ctx, left.Target); look == nil && !mounted {
		return err
	}
	return backends.Errorf(unfinished(kindOf(err)), "%w; what was made is left at %s: unpublish it, or publish it again",
		err, left.Target)
}

package node

import (
	"context"
	"path/filepath"

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
	return unlessUnmounted(ctx, left.Target, err)
}

// unlessUnmounted makes a failure of Publish non-final unless nothing is mounted at the target.
func unlessUnmounted(ctx context.Context, target string, err error) error {
	if mounted, look := mount.Mounted(ctx, target); look == nil && !mounted {
		return err
	}
	return backends.Errorf(unfinished(kindOf(err)), "%w; what was made is left at %s: unpublish it, or publish it again",
		err, target)
}

// StaysStaged makes a refusal to stage, whose request did not reach Stage, non-final as Stage does.
func (s *Service) StaysStaged(volume, stagingPath string, err error) error {
	st := &staging{service: s, request: StageRequest{Volume: volume, StagingPath: filepath.Clean(stagingPath)}}
	return st.staysStaged(err)
}

// StaysPublished makes a refusal to publish, whose request did not reach Publish, non-final if the volume is recorded
// at the target and something is mounted there.
func (s *Service) StaysPublished(ctx context.Context, volume, targetPath string, err error) error {
	left, recorded := s.ledger.Get(volume).Publication(filepath.Clean(targetPath))
	if err == nil || !recorded {
		return err
	}
	return unlessUnmounted(s.calls.With(ctx), left.Target, err)
}

package node

import (
	"context"
	"errors"
	"path/filepath"

	"golang.org/x/sys/unix"

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
func (st *staging) staysStaged(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	record := st.service.ledger.Get(st.request.Volume)
	left := record.Staged
	if left == nil {
		return st.staysUnrecorded(ctx, err)
	}
	if left.Path != asRecorded(record, st.request.StagingPath) || kindOf(err) == backends.Exists && !left.Pending {
		return err
	}
	return backends.Errorf(unfinished(kindOf(err)), "%w; what was made is left at %s: unstage it, or stage it again", err,
		left.Path)
}

// staysUnrecorded is staysStaged for a volume without a record, which may have been lost: the storage may know of the
// use, and the kernel of a mount at the staging path, or at that of a raw volume below it.
func (st *staging) staysUnrecorded(ctx context.Context, err error) error {
	kind := unfinished(kindOf(err))
	if st.stillUsed() {
		return backends.Errorf(kind, "%w; the storage notes it as in use, or cannot tell now: unstage it, or stage it again",
			err)
	}
	if kindOf(err) == kind || kindOf(err) == backends.Exists {
		return err // It is not final as it is.
	}
	if st.service.ledger.Owner(st.request.StagingPath) != "" {
		return err // What is mounted there is another volume.
	}
	for _, path := range []string{st.request.StagingPath, devicePlace(st.request.StagingPath)} {
		mounted, look := mount.Mounted(ctx, path)
		impossible := kindOf(look) == backends.Invalid || errors.Is(look, unix.ENAMETOOLONG) // Nothing can be there.
		if mounted || look != nil && !impossible {
			return backends.Errorf(kind, "%w; something may be mounted at %s: unstage it, or stage it again", err, path)
		}
	}
	return err
}

// staysPublished makes a failure of Publish non-final if the volume still shows at the target as requested. What shows
// there in another way the kubelet may forget if it was told so, with InUse or Exists: Unstage refuses as long as it is
// there.
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

// StaysStaged makes a refusal to stage non-final as Stage does. It is for a request that did not reach Stage.
func (s *Service) StaysStaged(ctx context.Context, volume, stagingPath string, err error) error {
	ctx = s.calls.With(ctx)
	if unknown := s.known(ctx, volume); unknown != nil && err != nil {
		return backends.Errorf(unfinished(kindOf(err)), "%w; it may be staged: %w", err, unknown)
	}
	st := &staging{service: s, request: StageRequest{Volume: volume, StagingPath: filepath.Clean(stagingPath)}}
	return st.staysStaged(ctx, err)
}

// StaysPublished makes a refusal of a request to publish non-final if the volume is recorded at the target, in whatever
// way, and something is mounted there.
func (s *Service) StaysPublished(ctx context.Context, volume, targetPath string, err error) error {
	ctx, target := s.calls.With(ctx), filepath.Clean(targetPath)
	unknown := s.known(ctx, volume)
	_, recorded := s.ledger.Get(volume).Publication(target)
	if err == nil || unknown == nil && !recorded {
		return err
	}
	return unlessUnmounted(ctx, target, err)
}

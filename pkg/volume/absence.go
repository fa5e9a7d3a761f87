package volume

import (
	"context"
	"errors"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// absent is the failure to create a volume, a snapshot or a group, with the backend's proof that none exists.
type absent struct{ error }

func (a absent) Unwrap() error { return a.error }

// IsAbsent reports whether a failure of Create, CreateSnapshot or CreateGroup comes with the proof that nothing of the
// name exists and that no earlier call will create it.
func IsAbsent(err error) bool {
	_, ok := errors.AsType[absent](err)
	return ok
}

// proven adds the proof to a failure, if the backend has one. The caller holds the lock of the name, as it did when the
// failure occurred.
func (s *Service) proven(ctx context.Context, spec backends.Spec, err error) error {
	if !s.isProvable(ctx, err) || !s.features.Prove.IsAbsent(ctx, spec) {
		return err
	}
	return absent{err}
}

// provenSnapshot is proven for a snapshot.
func (s *Service) provenSnapshot(ctx context.Context, spec backends.SnapshotSpec, err error) error {
	if !s.isProvable(ctx, err) || !s.features.Prove.IsSnapshotAbsent(ctx, spec) {
		return err
	}
	return absent{err}
}

// provenGroup is proven for a group of snapshots.
func (s *Service) provenGroup(ctx context.Context, spec backends.GroupSpec, err error) error {
	if !s.isProvable(ctx, err) || !s.features.Prove.IsGroupAbsent(ctx, spec) {
		return err
	}
	return absent{err}
}

// isProvable reports whether the backend is asked for a proof. After a failure that leaves the outcome open, a proof is
// of no use: the caller keeps the name and retries. For a taken name there is no proof. If the context has ended, the
// look is skipped: it may take as long as the call did on storage that does not answer, and the caller no longer gets
// the result.
func (s *Service) isProvable(ctx context.Context, err error) bool {
	if err == nil || s.features.Prove == nil || ctx.Err() != nil {
		return false
	}
	switch backends.KindOf(err) {
	case backends.Busy, backends.Unavailable, backends.Unusable, backends.Unknown, backends.Exists:
		return false
	default:
		return true
	}
}

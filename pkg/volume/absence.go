package volume

import (
	"context"
	"errors"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// absent is the failure to make a volume, a snapshot or a group of them, of which the backend proves that there is
// none.
type absent struct{ error }

func (a absent) Unwrap() error { return a.error }

// IsAbsent reports whether a failure of Create, CreateSnapshot or CreateGroup comes with the proof that there is
// nothing of the name, and that nothing comes of an earlier call.
func IsAbsent(err error) bool {
	_, ok := errors.AsType[absent](err)
	return ok
}

// proven adds the proof to a failure, where the backend has one. The lock of the name is held, as it was while the
// failure came about.
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

// isProvable reports whether the backend is asked for a proof. After a failure that leaves the outcome open nobody lets
// go of the name, whatever is proven: the same is asked for again. Of a name that is taken there is no proof. A look
// may take as long as the call did on storage that does not answer, and when the call has ended nobody hears of it.
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

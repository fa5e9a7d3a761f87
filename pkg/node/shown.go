package node

import (
	"context"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node/ledger"
	"github.com/stowage-csi/stowage/pkg/node/mount"
)

// shown is a place where a volume shows, or is known to have shown.
type shown struct {
	place  string // the path itself, or the device's file in it
	staged ledger.Staging
	seen   bool // whether the kernel has just confirmed that it shows there
}

// shows reports whether the mount at a place is what was staged, and leads to the device that was.
func shows(state mount.State, staged ledger.Staging) bool {
	return isAsRecorded(state, staged) && !isTakenAway(state, staged)
}

// isAsRecorded reports whether the mount at a place has the recorded root, and the recorded number if it is the node of
// a device. Another device may have that number by now.
func isAsRecorded(state mount.State, staged ledger.Staging) bool {
	return state.Mounted && rootOf(state) == staged.Root &&
		(staged.Type != backends.Block || state.Rdev == unix.Mkdev(staged.Source.Major, staged.Source.Minor))
}

// isTakenAway reports whether the device of a raw volume was taken away, so that its bound node leads to whatever
// device has its number. The kernel deletes the node of a disk that goes. It keeps the node of a loop device whose
// image is detached, and the next image gets it: only the sequence number tells.
func isTakenAway(state mount.State, staged ledger.Staging) bool {
	return staged.Type == backends.Block && (state.Deleted || isAnother(staged.Source.DevicePath, staged.Source))
}

// locate finds a volume at a path at which it was staged or published, and asks the kernel whether it is there. Kinds:
// NotFound when it is not; Unavailable when its mount is corrupted, and when its record was lost and something is
// mounted there that may be the volume.
func (s *Service) locate(ctx context.Context, volume, path string) (shown, error) {
	at, err := s.recorded(ctx, volume, path)
	if err != nil {
		return shown{}, err
	}
	return at, at.check(ctx)
}

// recorded returns where a volume shows for a path, as far as is known, without checking that it still does. Kinds:
// NotFound for a path that its record does not have; Unavailable when the record was lost and something is mounted
// there that may be the volume, and when it is raw, has a record without the path, and the kernel does not say whether
// it shows there.
func (s *Service) recorded(ctx context.Context, volume, path string) (shown, error) {
	if err := s.known(ctx, volume); err != nil {
		return shown{}, err
	}
	record := s.ledger.Get(volume)
	if place, ok := placeIn(record, path); ok {
		return shown{place: place, staged: *record.Staged}, nil
	}
	again, err := boundAgain(ctx, record, path)
	if err != nil {
		return shown{}, err
	}
	if again {
		return shown{place: path, staged: *record.Staged, seen: true}, nil
	}
	if record.Empty() && s.ledger.Owner(path) == "" {
		if mounted, err := mount.Mounted(ctx, path); err != nil || mounted {
			return shown{}, backends.Errorf(backends.Unavailable,
				"there is no record of it, as when the state directory was lost, and something is mounted at %s: it is known "+
					"again once it is staged anew, as after a restart of the kubelet", path)
		}
	}
	return shown{}, backends.Errorf(backends.NotFound, "it is neither staged nor published at %s", path)
}

// check asks the kernel whether the volume shows at its place, unless it has just confirmed it. Kinds: NotFound when it
// does not; Unavailable when its mount is corrupted.
func (at shown) check(ctx context.Context) error {
	if at.seen {
		return nil
	}
	state, err := mount.Inspect(ctx, at.place)
	switch {
	case err != nil:
		return backends.Errorf(backends.Unavailable, "its mount at %s does not answer: %w", at.place, err)
	case !shows(state, at.staged):
		return backends.Errorf(backends.NotFound, "it is not mounted at %s (any more)", at.place)
	}
	return nil
}

// boundAgain reports whether a path that is not in a raw volume's record nevertheless shows its device. The kubelet
// binds a published device once more, at a path of its own, and measures the volume there. Kinds: Unavailable when the
// kernel does not say.
func boundAgain(ctx context.Context, record ledger.Record, path string) (bool, error) {
	if record.Staged == nil || record.Staged.Type != backends.Block {
		return false, nil
	}
	state, err := mount.Inspect(ctx, path)
	if err != nil {
		return false, backends.Errorf(backends.Unavailable, "it cannot be told whether it is mounted at %s: %w", path, err)
	}
	return shows(state, *record.Staged), nil
}

// placeIn returns where the volume shows for a recorded path.
func placeIn(record ledger.Record, path string) (place string, ok bool) {
	if record.Staged == nil {
		return "", false
	}
	if samePath(record.Staged.Path, path) {
		return placeOf(*record.Staged), true
	}
	_, ok = record.Publication(path)
	return path, ok
}

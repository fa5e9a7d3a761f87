package mount

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/safepath"
)

// Unmount takes down every layer that is mounted at the path itself and returns once nothing is. A path
// where nothing is mounted, or that is not there, is no error. It follows no symlink in the last element.
//
// A filesystem that is in use stays: it is never detached lazily, for then nobody could tell when its
// device is free. The exception is one whose server is gone (ENOTCONN, ESTALE): it is forced, and detached
// when even that finds it in use, because nothing can be written to it any more.
//
// Kinds: Invalid for a path that is not absolute; InUse when something is open on the mount or mounted
// below it; Unavailable when the context ends first: the layer that was being taken down may still go, and
// no other.
func Unmount(ctx context.Context, path string) error {
	_, err := abandonable(ctx, func() (int, error) { return -1, unmountAll(ctx, path) })
	if err != nil {
		return backends.Errorf(backends.KindOf(err), "unmounting %q: %w", path, err)
	}
	return nil
}

// unmountAll goes through the parent directory that it opened at the start, so that all layers are
// taken from one place.
func unmountAll(ctx context.Context, path string) error {
	target, err := safepath.OpenTarget(path)
	if backends.Is(err, backends.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = target.Close() }() // O_PATH
	patience := time.NewTimer(busyPatience)
	defer patience.Stop()
	for {
		if ctx.Err() != nil {
			return backends.Errorf(backends.Unavailable, "given up: %w", ctx.Err())
		}
		more, err := unmountLayer(target.Pinned())
		switch {
		case backends.Is(err, backends.InUse) && !expired(patience, busyPoll):
		case err != nil || !more:
			return err
		}
	}
}

// A process that is being started at this moment has a copy of every descriptor of this one until it
// runs its program, those on the mount included: so "in use" is believed only when it lasts.
const (
	busyPatience = 50 * time.Millisecond
	busyPoll     = 5 * time.Millisecond
)

// expired waits for a moment and tells whether the timer has run out.
func expired(timer *time.Timer, moment time.Duration) bool {
	select {
	case <-timer.C:
		return true
	case <-time.After(moment):
		return false
	}
}

// unmountLayer takes down the topmost mount at a path; more is false when there was none.
func unmountLayer(path string) (more bool, err error) {
	state, err := Inspect(path)
	switch {
	case serverGone(err):
		return true, unmountFailure(path, force(path))
	case err != nil && !Corrupted(err):
		return false, err
	case err == nil && !state.Mounted:
		return false, nil
	}
	return true, unmountFailure(path, unix.Unmount(path, unix.UMOUNT_NOFOLLOW))
}

// serverGone tells whether an error says that the other end of a network or FUSE filesystem is gone.
func serverGone(err error) bool {
	return errors.Is(err, unix.ENOTCONN) || errors.Is(err, unix.ESTALE)
}

// force takes down a mount whose server is gone.
func force(path string) error {
	err := unix.Unmount(path, unix.MNT_FORCE|unix.UMOUNT_NOFOLLOW)
	if errors.Is(err, unix.EBUSY) {
		return unix.Unmount(path, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
	}
	return err
}

// unmountFailure says what a failed umount2 means; nothing when the mount went by itself meanwhile.
func unmountFailure(path string, err error) error {
	switch {
	case err == nil || errors.Is(err, unix.ENOENT):
		return nil
	case errors.Is(err, unix.EBUSY):
		return backends.Errorf(backends.InUse, "it is in use: stop what has files open there, or unmount what is mounted below it: %w", err)
	case errors.Is(err, unix.EINVAL):
		if state, look := Inspect(path); look == nil && !state.Mounted {
			return nil
		}
		return backends.Errorf(backends.Denied, "the mount belongs to another mount namespace and is locked here: %w", err)
	}
	return backends.Errorf(kindOf(err), "umount2: %w", err)
}

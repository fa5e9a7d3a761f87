package mount

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/deadline"
	"github.com/stowage-csi/stowage/pkg/safepath"
)

// Unmount unmounts every layer at the path itself and returns once nothing is mounted there. A path where nothing is
// mounted, or that does not exist, is no error. It follows no symlink in the last element.
//
// A filesystem that is in use stays mounted. It is never detached lazily, because then nobody could tell when its
// device is free. The exception is a filesystem whose server is gone (ENOTCONN) or no longer has it (ESTALE): it is
// detached if it is in use, because nothing can be written to it any more. In the first case only,
// the unmount is forced before, which aborts all operations on the whole filesystem. The volumes of a share are on one
// filesystem, and the removal of one of them there is no reason to fail the writes of the others.
//
// Kinds: Invalid for a path that is not absolute; InUse when something is open on the mount or mounted below it;
// Unavailable when the context ends first: the layer that was being unmounted may still go, and no other.
func Unmount(ctx context.Context, path string) error {
	call := deadline.Call{Name: fmt.Sprintf("unmounting %q", path)}
	return deadline.Run(ctx, call, func(ctx context.Context) error {
		if err := unmountAll(ctx, path); err != nil {
			return backends.Errorf(backends.KindOf(err), "unmounting %q: %w", path, err)
		}
		return nil
	})
}

// unmountAll works through the parent directory that it opened at the start, so that all layers are unmounted from one
// place.
func unmountAll(ctx context.Context, path string) error {
	target, err := safepath.OpenTarget(path)
	if backends.Is(err, backends.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = target.Close() }() // O_PATH
	busy := newBusy()
	defer busy.patience.Stop()
	for {
		if ctx.Err() != nil {
			return backends.Errorf(backends.Unavailable, "given up: %w", ctx.Err())
		}
		more, err := unmountLayer(ctx, target)
		switch {
		case backends.Is(err, backends.InUse) && busy.doubted(ctx):
		case err != nil || !more:
			return err
		}
	}
}

// unmountLayer unmounts the topmost mount at a path; more is false if there was none. The kernel knows whether there is
// one: a filesystem whose server does not answer is not asked, and can be unmounted.
func unmountLayer(ctx context.Context, target *safepath.Target) (more bool, err error) {
	path := target.Pinned()
	state, err := glance(path, unix.AT_STATX_DONT_SYNC)
	if late := ctx.Err(); late != nil {
		// That took time, and the current mount may have been made after the call was given up.
		return false, backends.Errorf(backends.Unavailable, "given up: %w", late)
	}
	switch {
	case errors.Is(err, unix.ENOTCONN):
		return true, unmountFailure(path, force(path))
	case err != nil && !Corrupted(err):
		return false, err
	case err == nil && !state.Mounted:
		return false, nil
	}
	err = unix.Unmount(path, unix.UMOUNT_NOFOLLOW)
	if errors.Is(err, unix.EBUSY) {
		switch gone := missing(ctx, target.Path()); {
		case ctx.Err() != nil:
		case errors.Is(gone, unix.ENOTCONN):
			err = force(path)
		case errors.Is(gone, unix.ESTALE):
			err = unix.Unmount(path, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
		}
	}
	return true, unmountFailure(path, err)
}

// missing returns the error of a filesystem that is in use, which may say that it is gone. A filesystem that does not
// answer is not gone.
func missing(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	_, err := Inspect(ctx, path)
	return err
}

// answerTime is how long missing waits.
const answerTime = 500 * time.Millisecond

// force unmounts a mount whose server is gone.
func force(path string) error {
	err := unix.Unmount(path, unix.MNT_FORCE|unix.UMOUNT_NOFOLLOW)
	if errors.Is(err, unix.EBUSY) {
		return unix.Unmount(path, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
	}
	return err
}

// unmountFailure interprets an error of umount2; nil if the mount went by itself meanwhile.
func unmountFailure(path string, err error) error {
	switch {
	case err == nil || errors.Is(err, unix.ENOENT):
		return nil
	case errors.Is(err, unix.EBUSY):
		return backends.Errorf(backends.InUse,
			"it is in use: stop what has files open there, or unmount what is mounted below it: %w", err)
	case errors.Is(err, unix.EINVAL):
		if state, look := glance(path, unix.AT_STATX_DONT_SYNC); look == nil && !state.Mounted {
			return nil
		}
		return backends.Errorf(backends.Denied, "the mount belongs to another mount namespace and is locked here: %w", err)
	}
	return backends.Errorf(kindOf(err), "umount2: %w", err)
}

package device

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// detachPoll is how often to check whether the processes that inspect a device have closed it.
const detachPoll = 2 * time.Millisecond

// detach frees the loop device if mine accepts what it holds, and reports whether it did. While the device is open
// elsewhere, the kernel only promises to free it at the last close (LOOP_CLR_FD, loop(4)). detach revokes that promise
// if the device is open for longer than patience.
func (l loopDevice) detach(ctx context.Context, mine judge, patience time.Duration) (freed bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(detachPoll)
	defer tick.Stop()
	return l.free(ctx, mine, tick.C)
}

// free is detach that checks again at each tick until the context ends.
func (l loopDevice) free(ctx context.Context, mine judge, tick <-chan time.Time) (freed bool, err error) {
	before, err := l.clearOnceFree(ctx, mine, tick)
	if err != nil || before == nil {
		return false, err
	}
	for {
		ended, err := l.ended(before.attachment, mine)
		if err != nil || ended {
			return ended, err
		}
		if ctx.Err() != nil {
			return false, l.restore(mine, before.status.Flags&unix.LO_FLAGS_AUTOCLEAR == 0)
		}
		select {
		case <-tick:
		case <-ctx.Done():
		}
	}
}

// held describes what a loop device held.
type held struct {
	status *unix.LoopInfo64
	attachment
}

// clearOnceFree is clear that waits while the device is claimed. An unmounted filesystem is no longer visible while the
// kernel still writes it back and keeps the device. The same is true of an unmount that was given up at its deadline
// and goes on.
func (l loopDevice) clearOnceFree(ctx context.Context, mine judge, tick <-chan time.Time) (*held, error) {
	for {
		before, err := l.clear(ctx, mine)
		if before == nil || !errors.Is(err, unix.EBUSY) {
			return before, err
		}
		select {
		case <-tick:
		case <-ctx.Done():
			return nil, err
		}
		if ended, err := l.ended(before.attachment, mine); err != nil || ended {
			return before, err
		}
	}
}

// clear asks the kernel to free the loop device and returns what it held; nil if mine does not accept that. It clears
// through the descriptor that it checked, so the check still holds. A device that is mounted, or claimed in another
// way, is left alone. Errors after the check come with what the device held.
func (l loopDevice) clear(ctx context.Context, mine judge) (*held, error) {
	node, status, err := l.openIf(mine)
	if err != nil || node == nil {
		return nil, err
	}
	defer func() { _ = node.Close() }() // open for reading only
	shown, _, err := l.shown()          // It holds the file while the node is open.
	if err != nil {
		return nil, err
	}
	before := &held{status, shown}
	claim, err := unix.Open(l.path, unix.O_RDONLY|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.EBUSY) {
		return before, backends.Errorf(backends.InUse, "%s is mounted or claimed by another device: %w", l.path, err)
	}
	if err != nil {
		return before, backends.Errorf(openKind(err), "claiming %s: %w", l.path, err)
	}
	_ = unix.Close(claim) // opened only to check
	if err := ctx.Err(); err != nil {
		return before, backends.Errorf(backends.Unavailable, "freeing %s: not begun: %w", l.path, err)
	}
	err = unix.IoctlSetInt(int(node.Fd()), unix.LOOP_CLR_FD, 0)
	switch {
	case err == nil:
		return before, nil
	case errors.Is(err, unix.ENXIO):
		return nil, nil
	}
	return before, backends.Errorf(openKind(err), "freeing %s: %w", l.path, err)
}

// restore revokes the kernel's promise if the loop device was to stay until it is detached, and returns that it is in
// use.
func (l loopDevice) restore(mine judge, stay bool) error {
	node, now, err := l.openIf(mine)
	if err != nil {
		return err
	}
	if node != nil { // otherwise it is being freed
		defer func() { _ = node.Close() }() // open for reading only
		if stay {
			if err := setAutoclear(node, now, false); err != nil {
				return err
			}
		}
	}
	return backends.Errorf(backends.InUse, "%s is open: stop what uses it", l.path)
}

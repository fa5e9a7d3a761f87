package device

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// detachPoll is how often it is looked whether those who take a look at a device have gone.
const detachPoll = 2 * time.Millisecond

// detach frees the loop device if it holds what is looked for, and reports whether it did. While others have it open
// the kernel only promises to free it with their last close (LOOP_CLR_FD, loop(4)): such a promise is taken back once
// they had it open for longer than they may.
func (l loopDevice) detach(ctx context.Context, mine judge, patience time.Duration) (freed bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(detachPoll)
	defer tick.Stop()
	before, err := l.clearOnceFree(ctx, mine, tick.C)
	if err != nil || before == nil {
		return false, err
	}
	for {
		node, _, err := l.openIf(mine)
		if err != nil || node == nil {
			return err == nil, err
		}
		_ = node.Close() // only looked at
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false, l.restore(mine, before.Flags&unix.LO_FLAGS_AUTOCLEAR == 0)
		}
	}
}

// clearOnceFree is clear that waits while the device is claimed. A mount that was taken down is out of
// everybody's sight before the kernel has written its filesystem back and let go of the device; so it is
// after an unmount that was given up at its deadline and goes on.
func (l loopDevice) clearOnceFree(ctx context.Context, mine judge, tick <-chan time.Time) (*unix.LoopInfo64, error) {
	for {
		before, err := l.clear(ctx, mine)
		if !errors.Is(err, unix.EBUSY) {
			return before, err
		}
		select {
		case <-tick:
		case <-ctx.Done():
			return nil, err
		}
	}
}

// clear asks the kernel to free the loop device and returns its status before; nil when it does not hold what is looked
// for. The descriptor by which that was seen is the one that clears, so that it is true still.
// A device that is mounted, or claimed in another way, is left alone.
func (l loopDevice) clear(ctx context.Context, mine judge) (*unix.LoopInfo64, error) {
	node, before, err := l.openIf(mine)
	if err != nil || node == nil {
		return nil, err
	}
	defer func() { _ = node.Close() }() // open for reading only
	claim, err := unix.Open(l.path, unix.O_RDONLY|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.EBUSY) {
		return nil, backends.Errorf(backends.InUse, "%s is mounted or claimed by another device: %w", l.path, err)
	}
	if err != nil {
		return nil, backends.Errorf(openKind(err), "claiming %s: %w", l.path, err)
	}
	_ = unix.Close(claim) // it was a question only
	if err := ctx.Err(); err != nil {
		return nil, backends.Errorf(backends.Unavailable, "freeing %s: not begun: %w", l.path, err)
	}
	err = unix.IoctlSetInt(int(node.Fd()), unix.LOOP_CLR_FD, 0)
	switch {
	case err == nil:
		return before, nil
	case errors.Is(err, unix.ENXIO):
		return nil, nil
	}
	return nil, backends.Errorf(openKind(err), "freeing %s: %w", l.path, err)
}

// restore takes the kernel's promise back where the loop device was to stay until it is detached, and
// says that it is in use.
func (l loopDevice) restore(mine judge, stay bool) error {
	node, now, err := l.openIf(mine)
	if err != nil || node == nil {
		return err
	}
	defer func() { _ = node.Close() }() // open for reading only
	if stay {
		if err := setAutoclear(node, now, false); err != nil {
			return err
		}
	}
	return backends.Errorf(backends.InUse, "%s is open: stop what uses it", l.path)
}

package freeze

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// The requests of linux/fs.h, which golang.org/x/sys does not have: _IOWR('X', 119, int) and
// _IOWR('X', 120, int).
const (
	fiFreeze = 0xc0045877
	fiThaw   = 0xc0045878
)

// ErrLimit means that the work took longer than a filesystem may stay frozen.
var ErrLimit = errors.New("the filesystem would have stayed frozen for too long")

// ErrThawed means that another process thawed a filesystem before the work was done.
var ErrThawed = errors.New("the filesystem was thawed by somebody else")

// ErrStillFrozen means that a filesystem could not be thawed.
var ErrStillFrozen = errors.New("the filesystem is still frozen")

// During freezes the filesystems, does the work, and thaws them. If it returns nil, nothing was written to any of them
// during the work. Otherwise the results of the work are worthless.
//
// The context of the work ends after the limit. Then, or when ctx ends, everything is thawed at once, whether or not
// the work has returned. The limit counts from the first freeze. Without filesystems During only does the work.
//
// It fails with ErrLimit, ErrThawed, ErrStillFrozen, the context's error, the work's, or the kernel's: EBUSY for a
// filesystem that is already frozen, EOPNOTSUPP for one that cannot be frozen. It freezes nothing, and fails with the
// Kind Unavailable, if a loop device no longer holds the image that it held when the filesystem was found.
func During(ctx context.Context, filesystems []Filesystem, limit time.Duration,
	work func(context.Context) error) error {
	if len(filesystems) == 0 {
		return work(ctx)
	}
	var h holder
	defer h.close()
	if err := h.open(ctx, filesystems); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, ErrLimit)
	defer cancel()
	defer context.AfterFunc(ctx, h.giveUp)()
	err := h.freeze()
	if err == nil {
		err = work(ctx)
	}
	thawed := h.thaw()
	if cause := context.Cause(ctx); cause != nil {
		return errors.Join(cause, thawed)
	}
	return errors.Join(err, thawed)
}

// holder keeps the frozen filesystems, so that each is thawed exactly once.
type holder struct {
	dirs []*os.File

	mu     sync.Mutex
	frozen []*os.File
	over   bool // no further freezes
	errs   []error
}

// open opens the filesystems and syncs them, so that freezing takes little time.
func (h *holder) open(ctx context.Context, filesystems []Filesystem) error {
	for _, f := range filesystems {
		if err := ctx.Err(); err != nil {
			return err
		}
		dir, err := f.open()
		if err != nil {
			return err
		}
		h.dirs = append(h.dirs, dir)
		if err := unix.Syncfs(int(dir.Fd())); err != nil {
			return &os.PathError{Op: "syncfs", Path: dir.Name(), Err: err}
		}
	}
	return nil
}

// freeze freezes them one after another; FIFREEZE waits for writers and may take a while.
func (h *holder) freeze() error {
	for _, dir := range h.dirs {
		if err := unix.IoctlSetInt(int(dir.Fd()), fiFreeze, 0); err != nil {
			return &os.PathError{Op: "FIFREEZE", Path: dir.Name(), Err: err}
		}
		h.mu.Lock()
		h.frozen = append(h.frozen, dir)
		over := h.over
		h.mu.Unlock()
		if over { // The time ran out while this one was being frozen.
			h.giveUp()
			return ErrLimit
		}
	}
	return nil
}

// giveUp thaws everything that is frozen and prevents further freezes. thaw returns its errors.
func (h *holder) giveUp() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.over = true
	for _, dir := range h.frozen {
		if err := thaw(dir); err != nil {
			h.errs = append(h.errs, err)
		}
	}
	h.frozen = nil
}

// thaw calls giveUp and returns all errors so far.
func (h *holder) thaw() error {
	h.giveUp()
	h.mu.Lock()
	defer h.mu.Unlock()
	return errors.Join(h.errs...)
}

// thaw thaws one filesystem. The kernel returns EINVAL if it is not frozen.
func thaw(dir *os.File) error {
	err := unix.IoctlSetInt(int(dir.Fd()), fiThaw, 0)
	if errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("%s: %w", dir.Name(), ErrThawed)
	}
	if err != nil {
		return fmt.Errorf("FITHAW %s: %w: %w", dir.Name(), ErrStillFrozen, err)
	}
	return nil
}

// close thaws what is left after a panic of the work, and closes the directories.
func (h *holder) close() {
	h.giveUp()
	for _, dir := range h.dirs {
		closeQuietly(dir)
	}
}

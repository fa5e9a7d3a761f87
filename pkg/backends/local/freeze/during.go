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

// ErrLimit says that the work took longer than a filesystem may stay frozen.
var ErrLimit = errors.New("the filesystem would have stayed frozen for too long")

// ErrThawed says that somebody else thawed a filesystem before the work was done.
var ErrThawed = errors.New("the filesystem was thawed by somebody else")

// ErrStillFrozen says that a filesystem could not be thawed.
var ErrStillFrozen = errors.New("the filesystem is still frozen")

// During freezes the filesystems, does the work, and thaws them. When it returns nil, nothing was written
// to any of them from the beginning of the work to its end. Otherwise whatever the work made is worthless.
//
// The context given to the work ends after the limit, and then, or when ctx ends, everything is thawed at
// once, whether the work returns or not. The limit counts from the first freeze. Without filesystems the
// work is just done.
//
// It fails with ErrLimit, ErrThawed, ErrStillFrozen, the context's error, the work's, or the kernel's: EBUSY
// for what is frozen already, EOPNOTSUPP for a filesystem that cannot be frozen.
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

// holder keeps what is frozen, so that it is thawed exactly once.
type holder struct {
	dirs []*os.File

	mu     sync.Mutex
	frozen []*os.File
	over   bool // nothing more is frozen
	errs   []error
}

// open opens the filesystems and writes out what they hold, so that freezing them takes little time.
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

// freeze freezes one after another; FIFREEZE waits for writers and may take a while.
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

// giveUp thaws all that is frozen and lets nothing be frozen any more. What fails is said by thaw.
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

// thaw is giveUp that tells what failed, now or before.
func (h *holder) thaw() error {
	h.giveUp()
	h.mu.Lock()
	defer h.mu.Unlock()
	return errors.Join(h.errs...)
}

// thaw thaws one filesystem; one that is not frozen is EINVAL.
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

// close thaws what a panic of the work has left, and closes the directories.
func (h *holder) close() {
	h.giveUp()
	for _, dir := range h.dirs {
		closeQuietly(dir)
	}
}

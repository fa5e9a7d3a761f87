package freeze

import (
	"context"
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Thaw thaws the filesystems that a killed process left frozen, and reports whether there were any. Call it at the
// start of a process whose own notes say that it was freezing them.
func (u Use) Thaw(ctx context.Context) (bool, error) {
	var thawed bool
	var errs []error
	for _, f := range u.Filesystems {
		if err := ctx.Err(); err != nil {
			return thawed, errors.Join(append(errs, err)...)
		}
		err := f.thaw()
		if errors.Is(err, ErrThawed) {
			continue
		}
		thawed = thawed || err == nil
		errs = append(errs, err)
	}
	return thawed, errors.Join(errs...)
}

func (f Filesystem) thaw() error {
	dir, err := f.open()
	if err != nil {
		return err
	}
	defer closeQuietly(dir)
	return thaw(dir)
}

// Flush writes cached data to the image: that of the filesystems on it, and then that of the loop devices themselves.
func (u Use) Flush(ctx context.Context) error {
	for _, f := range u.Filesystems {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := f.flush(); err != nil {
			return err
		}
	}
	for _, path := range u.Loops {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := flushDevice(path); err != nil {
			return err
		}
	}
	return nil
}

func (f Filesystem) flush() error {
	dir, err := f.open()
	if err != nil {
		return err
	}
	defer closeQuietly(dir)
	if err := unix.Syncfs(int(dir.Fd())); err != nil {
		return &os.PathError{Op: "syncfs", Path: dir.Name(), Err: err}
	}
	return nil
}

func flushDevice(path string) error {
	device, err := os.Open(path)
	if err != nil {
		return err
	}
	defer closeQuietly(device)
	return device.Sync()
}

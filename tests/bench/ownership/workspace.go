package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// prefix is the prefix of the name of every directory of a run.
const prefix = "stowage-ownership-bench-"

// workspace is a directory for the images and their mount. It is locked while its run is alive.
type workspace struct {
	dir    string
	lock   *os.File
	copies int
}

// newWorkspace creates a workspace below parent, after removing those of killed runs.
func newWorkspace(ctx context.Context, parent string) (*workspace, error) {
	stale, err := filepath.Glob(filepath.Join(parent, prefix+"*"))
	if err != nil {
		return nil, err
	}
	for _, dir := range stale {
		if err := removeStale(ctx, dir); err != nil {
			return nil, err
		}
	}
	dir, err := os.MkdirTemp(parent, prefix)
	if err != nil {
		return nil, err
	}
	w := &workspace{dir: dir}
	if w.lock, err = lockDir(dir); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return w, os.Mkdir(w.root(), 0o700)
}

// lockDir locks a directory until the file is closed, or the process ends.
func lockDir(dir string) (*os.File, error) {
	file, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(os.NewSyscallError("flock", err), file.Close())
	}
	return file, nil
}

func removeStale(ctx context.Context, dir string) error {
	lock, err := lockDir(dir)
	if errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, os.ErrNotExist) {
		return nil // Its run is alive, or has just cleaned up.
	}
	if err != nil {
		return err
	}
	w := &workspace{dir: dir, lock: lock}
	if err := w.unmount(ctx); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
		return err
	}
	return w.close()
}

// root returns the mount point of the image.
func (w *workspace) root() string { return filepath.Join(w.dir, "mount") }

func (w *workspace) image(name string) string { return filepath.Join(w.dir, name+".image") }

// close removes everything.
func (w *workspace) close() error {
	if err := unix.Unmount(w.root(), unix.UMOUNT_NOFOLLOW); err != nil && !errors.Is(err, unix.EINVAL) &&
		!errors.Is(err, unix.ENOENT) {
		return errors.Join(fmt.Errorf("unmounting %s: %w", w.root(), err), w.lock.Close())
	}
	return errors.Join(os.RemoveAll(w.dir), w.lock.Close())
}

// format creates an image with enough space for the files.
func (w *workspace) format(ctx context.Context, fs, image string, files int) error {
	file, err := os.Create(image)
	if err != nil {
		return err
	}
	// For inodes of 256 and 512 bytes, directories, and a log of the size that a pod's volume has.
	if err := errors.Join(file.Truncate(1<<30+int64(files)*3072), file.Close()); err != nil {
		return err
	}
	if fs == "xfs" {
		return command(ctx, "mkfs.xfs", "-q", image)
	}
	// Without lazy initialization, which would continue during the measurement.
	return command(ctx, "mkfs.ext4", "-q", "-N", strconv.Itoa(files+files/100+1000), "-E",
		"lazy_itable_init=0,lazy_journal_init=0", image)
}

// mount mounts an image through a loop device that ends with the mount. A mount namespace that another process has
// created in the meantime may still contain the mount of another copy, with the same UUID.
func (w *workspace) mount(ctx context.Context, fs, image string) error {
	options := "loop"
	if fs == "xfs" {
		options += ",nouuid"
	}
	return command(ctx, "mount", "-o", options, image, w.root())
}

func (w *workspace) unmount(context.Context) error {
	return os.NewSyscallError("umount", unix.Unmount(w.root(), unix.UMOUNT_NOFOLLOW))
}

// copyOf copies an image under a new name: a loop device that another process still holds open outlives its mount, and
// would be reused with its cached data.
func (w *workspace) copyOf(ctx context.Context, image string) (string, error) {
	w.copies++
	fresh := w.image(fmt.Sprint("copy-", w.copies))
	return fresh, command(ctx, "cp", "--sparse=always", image, fresh)
}

// forget drops the cached data of a file, as after a reboot.
func forget(image string) error {
	file, err := os.Open(image)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_DONTNEED), file.Close())
}

func command(ctx context.Context, name string, args ...string) error {
	output, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %q: %w: %s", name, args, err, output)
	}
	return nil
}

package memory

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/background"
)

// files are the bytes of volumes and snapshots: a directory each, named after the handle, with a
// directory "data" and a file "image" in it. Handles that get here were made by newHandle.
type files struct {
	root string
}

// openFiles starts empty: nothing knows any longer what an earlier process left.
func openFiles(dataDir string, log *slog.Logger) (*files, error) {
	// The folder in the data directory is one that nobody else has, since it is emptied.
	f := &files{root: filepath.Join(dataDir, "memory-backend")}
	if left, err := os.ReadDir(f.root); err == nil && len(left) > 0 {
		log.Warn("removing the volumes and snapshots of an earlier process", "directory", f.root, "count", len(left))
	}
	if err := f.clear(); err != nil {
		return nil, err
	}
	return f, failure("the data directory cannot be made", os.MkdirAll(f.root, 0o700))
}

// close removes all files. Kinds: Busy when that has not ended by the end of the context.
func (f *files) close(ctx context.Context) error {
	var removal background.Group
	var failed error
	removal.Go("the removal of the volumes and snapshots in "+f.root, func() { failed = f.clear() })
	if err := removal.Wait(ctx); err != nil {
		return err
	}
	return failed
}

func (f *files) clear() error {
	return failure("old volumes cannot be removed", os.RemoveAll(f.root))
}

func (f *files) data(handle string) string  { return filepath.Join(f.root, handle, "data") }
func (f *files) image(handle string) string { return filepath.Join(f.root, handle, "image") }

// create makes a volume's files with the contents of those of another handle, unless that is empty.
func (f *files) create(ctx context.Context, handle, from string, size int64) error {
	err := f.fill(ctx, handle, from)
	if err == nil {
		err = f.resize(handle, size)
	}
	return f.keep(err, handle)
}

// copy makes the files of all the snapshots, or of none.
func (f *files) copy(ctx context.Context, snapshots ...*snapshot) error {
	var handles []string
	for _, s := range snapshots {
		handles = append(handles, s.handle)
		if err := f.fill(ctx, s.handle, s.volume); err != nil {
			return f.keep(err, handles...)
		}
	}
	return nil
}

func (f *files) fill(ctx context.Context, handle, from string) error {
	if err := os.Mkdir(filepath.Join(f.root, handle), 0o700); err != nil {
		return failure("no directory for a volume", err)
	}
	if from != "" {
		return failure("copying failed", copyTree(ctx, filepath.Join(f.root, handle), filepath.Join(f.root, from)))
	}
	if err := os.Mkdir(f.data(handle), 0o755); err != nil {
		return failure("no directory for a volume's data", err)
	}
	return failure("no image for a volume", os.WriteFile(f.image(handle), nil, 0o600))
}

// keep passes err on, and leaves nothing of the handles behind when there is one.
func (f *files) keep(err error, handles ...string) error {
	if err == nil {
		return nil
	}
	for _, handle := range handles {
		// The cause is in err. What cannot be removed now is removed when the backend is opened again.
		_ = f.remove(handle)
	}
	return err
}

func (f *files) resize(handle string, size int64) error {
	return failure("the image cannot have that size", os.Truncate(f.image(handle), size))
}

func (f *files) remove(handle string) error {
	return failure("files cannot be removed", os.RemoveAll(filepath.Join(f.root, handle)))
}

// check reports whether a volume's files are there.
func (f *files) check(handle string) error {
	_, err := os.Stat(f.data(handle))
	if err == nil {
		_, err = os.Stat(f.image(handle))
	}
	return failure("the volume's files are missing", err)
}

func (f *files) checkRoot() error {
	_, err := os.Stat(f.root)
	return failure("the data directory is missing", err)
}

// failure gives an error of the operating system the Kind that it has for a caller; nil stays nil.
func failure(what string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return backends.Errorf(backends.Exhausted, "%s: %w", what, err)
	case errors.Is(err, syscall.EFBIG):
		return backends.Errorf(backends.OutOfRange, "%s: %w", what, err)
	}
	return backends.Errorf(backends.Unavailable, "%s: %w", what, err)
}

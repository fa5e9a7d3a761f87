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

// files stores the data of volumes and snapshots. Each has a directory named after its handle, with a directory "data"
// and a file "image" in it. The handles come from newHandle.
type files struct {
	root string
}

// openFiles starts empty, because the records of an earlier process's files are lost.
func openFiles(dataDir string, log *slog.Logger) (*files, error) {
	// The folder in the data directory is exclusive to this backend, because it is emptied.
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

// create creates a volume's files with the contents of the handle from, or empty if from is empty.
func (f *files) create(ctx context.Context, handle, from string, size int64) error {
	err := f.fill(ctx, handle, from)
	if err == nil {
		err = f.resize(handle, size)
	}
	return f.keep(err, handle)
}

// copy creates the files of all the snapshots, or of none.
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

// keep returns err. If err is not nil, it removes the files of the handles.
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

// check checks that a volume's files exist.
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

// failure wraps an error of the operating system in the matching Kind; nil stays nil.
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

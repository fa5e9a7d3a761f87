package setup

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// MarkerFile is the strategy of a setup whose outcome cannot be seen: a file stands for it.
type MarkerFile struct {
	// Path is the path of the file. Its directory exists and belongs to the driver alone.
	Path string
}

// ShouldRun reports whether the file is missing. Kinds: Invalid when something else is at its place.
func (m MarkerFile) ShouldRun(context.Context) (bool, error) {
	info, err := os.Lstat(m.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true, nil
	case err != nil:
		return false, backends.Errorf(backends.Unknown, "cannot tell whether the marker file %s is there: %w", m.Path, err)
	case !info.Mode().IsRegular():
		return false, backends.Errorf(backends.Invalid, "the marker %s is a %s: it must be a regular file or be absent",
			m.Path, info.Mode().Type())
	}
	return false, nil
}

// Mark creates the file. It returns once the file would survive a loss of power. If that fails, Mark removes the file,
// so that the setup runs again. Kinds: Unavailable.
func (m MarkerFile) Mark(context.Context) error {
	file, err := os.OpenFile(m.Path, os.O_CREATE|os.O_WRONLY|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return backends.Errorf(backends.Unavailable, "cannot make the marker file: %w", err)
	}
	err = errors.Join(file.Sync(), file.Close(), syncDirectory(filepath.Dir(m.Path)))
	if err != nil {
		return backends.Errorf(backends.Unavailable, "cannot make the marker file durable: %w",
			errors.Join(err, os.Remove(m.Path)))
	}
	return nil
}

// syncDirectory makes the names in a directory durable (fsync(2): syncing a file does not sync its name).
func syncDirectory(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

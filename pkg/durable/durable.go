package durable

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/rawfile"
)

// WriteNew creates a file with the data. The data is on disk when WriteNew returns, and the file's name only after
// SyncDir of the directory. It fails with fs.ErrExist if the file exists.
func WriteNew(path string, data []byte) error {
	file, err := rawfile.Open(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err = file.Write(data); err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// Replace replaces the file at path by one with the data, or creates it. At no time is the file at path missing or half
// written. The new file is built at draft, on the same filesystem; a draft that a crash left there is dropped.
func Replace(path, draft string, data []byte) error {
	if err := os.Remove(draft); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := WriteNew(draft, data); err != nil {
		return errors.Join(err, removeAny(draft))
	}
	if err := os.Rename(draft, path); err != nil {
		return errors.Join(err, removeAny(draft))
	}
	return SyncDir(filepath.Dir(path))
}

// removeAny removes a file that may not exist.
func removeAny(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// MoveNew renames a file or directory, and never replaces another: it fails with fs.ErrExist if to exists
// (renameat2(2), RENAME_NOREPLACE). The move is durable after SyncDir of both parents.
func MoveNew(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	if err != nil {
		return &os.LinkError{Op: "renameat2", Old: from, New: to, Err: err}
	}
	return nil
}

// SyncDir makes the names in a directory durable (fsync(2) of the directory).
func SyncDir(path string) error {
	dir, err := rawfile.Open(path, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	if err := errors.Join(dir.Sync(), dir.Close()); err != nil {
		return fmt.Errorf("the names in %s could not be made durable: %w", path, err)
	}
	return nil
}

// SyncFile makes a file's data and size durable, whichever process wrote them.
func SyncFile(path string) error {
	file, err := rawfile.Open(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}

// MakeAll creates a directory and its missing parents. They survive a power failure once MakeAll returns.
func MakeAll(path string, mode os.FileMode) error {
	var missing []string
	for at := filepath.Clean(path); at != filepath.Dir(at); at = filepath.Dir(at) {
		if _, err := os.Lstat(at); !errors.Is(err, os.ErrNotExist) {
			break
		}
		missing = append(missing, at)
	}
	if err := os.MkdirAll(path, mode); err != nil {
		return err
	}
	for _, made := range missing {
		if err := SyncDir(filepath.Dir(made)); err != nil {
			return err
		}
	}
	return nil
}

package durable

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/rawfile"
)

// WriteNew makes a file with the data, which is on disk when WriteNew returns; its name is not before
// SyncDir of the directory. It fails with fs.ErrExist when there is one.
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

// Replace puts a file with the data in the place of path, or makes it: at no time is the file at path
// missing or half written. The new file is built at draft, on the same filesystem; what a crash left there
// is dropped.
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

// removeAny removes a file that may not be there.
func removeAny(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// MoveNew renames a file or directory and never replaces another: it fails with fs.ErrExist when there is
// something at to (renameat2(2), RENAME_NOREPLACE). It is durable after SyncDir of both parents.
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

// SyncFile makes a file's data and size durable, whoever wrote them.
func SyncFile(path string) error {
	file, err := rawfile.Open(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}

// MakeAll makes a directory and what is missing above it, all of which a loss of power keeps once it
// returns.
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

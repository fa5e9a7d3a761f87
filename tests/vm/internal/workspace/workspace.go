package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// prefix is the prefix of the folders' names. This package ignores other folders.
const prefix = "stowage-vm-run-"

// Workspace is the folder of one run.
type Workspace struct {
	dir  string
	lock *os.File
}

// New creates a folder below parent, after it has removed the folders of dead runs there.
func New(parent string) (*Workspace, error) {
	if err := sweep(parent); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(parent, prefix)
	if err != nil {
		return nil, err
	}
	lock, err := lockDir(dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	w := &Workspace{dir: dir, lock: lock}
	// Records exist only once the lock is held: a folder without them is about to be locked by its owner.
	return w, os.Mkdir(w.Path(records), 0o700)
}

// Path returns a path in the folder.
func (w *Workspace) Path(names ...string) string {
	return filepath.Join(append([]string{w.dir}, names...)...)
}

// Remove ends the processes that still run, and removes the folder.
func (w *Workspace) Remove() error {
	return errors.Join(endAll(w.dir), os.RemoveAll(w.dir), w.lock.Close())
}

// lockDir fails with EWOULDBLOCK while the owner is alive.
func lockDir(dir string) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(dir, "owner.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", dir, err), file.Close())
	}
	return file, nil
}

func sweep(parent string) error {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return err
	}
	var problems []error
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), prefix) && entry.IsDir() {
			problems = append(problems, sweepOne(filepath.Join(parent, entry.Name())))
		}
	}
	return errors.Join(problems...)
}

func sweepOne(dir string) error {
	if _, err := os.Lstat(filepath.Join(dir, records)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	lock, err := lockDir(dir)
	if errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(endAll(dir), os.RemoveAll(dir), lock.Close())
}

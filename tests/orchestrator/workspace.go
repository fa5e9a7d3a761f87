package orchestrator

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Workspace is a directory with all files of one run: the driver's data, its socket and log, and the mount points of
// volumes. Its owner holds a lock on it, so that a later run can distinguish a dead run's leftovers from a concurrent
// run's files.
type Workspace struct {
	Dir string
	// Warnings describe leftovers of an earlier run that could not be removed.
	Warnings []string
	lock     *os.File
}

// NewWorkspace creates a directory with the prefix in the directory for temporary files, after it has removed the
// directories of dead runs with the same prefix. The prefix is a file name without slashes.
func NewWorkspace(prefix string) (*Workspace, error) {
	warnings := sweep(prefix)
	dir, err := os.MkdirTemp("", prefix+"-")
	if err != nil {
		return nil, err
	}
	w := &Workspace{Dir: dir, Warnings: warnings}
	if w.lock, err = lockDir(dir); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	// Other users' workloads traverse these; the driver restricts its own directory itself.
	for _, path := range []string{dir, w.Mounts(), w.Data()} {
		if err := errors.Join(os.MkdirAll(path, 0o711), os.Chmod(path, 0o711)); err != nil {
			return nil, errors.Join(err, w.Remove())
		}
	}
	return w, nil
}

// Data returns the driver's --data-dir.
func (w *Workspace) Data() string { return filepath.Join(w.Dir, "data") }

// Mounts returns the directory of the staging and target directories, like the kubelet's directory.
func (w *Workspace) Mounts() string { return filepath.Join(w.Dir, "mounts") }

// Socket returns the path of the driver's socket.
func (w *Workspace) Socket() string { return filepath.Join(w.Dir, "csi.sock") }

// Log returns the path of the driver's log.
func (w *Workspace) Log() string { return filepath.Join(w.Dir, "driver.log") }

// Remove removes the workspace, in whatever state it is, with every mount and loop device below it. It fails if it
// could not remove everything.
func (w *Workspace) Remove() error {
	return errors.Join(takeDown(w.Dir), w.lock.Close())
}

// lockDir locks a workspace. It fails with EWOULDBLOCK while the owner is alive.
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

// sweep removes the workspaces with the prefix whose owners are dead. It skips a very new one: its owner may be about
// to lock it.
func sweep(prefix string) (warnings []string) {
	dirs, err := filepath.Glob(filepath.Join(os.TempDir(), prefix+"-*"))
	if err != nil {
		return []string{err.Error()}
	}
	for _, dir := range dirs {
		info, err := os.Lstat(dir)
		suffix := strings.TrimPrefix(filepath.Base(dir), prefix+"-")
		if err != nil || !info.IsDir() || strings.Trim(suffix, "0123456789") != "" ||
			time.Since(info.ModTime()) < time.Second {
			continue
		}
		lock, err := lockDir(dir)
		if errors.Is(err, unix.EWOULDBLOCK) {
			continue
		}
		if err == nil {
			err = errors.Join(takeDown(dir), lock.Close())
		}
		if err != nil {
			warnings = append(warnings, fmt.Sprintf("an earlier run left %s: %v", dir, err))
		}
	}
	return warnings
}

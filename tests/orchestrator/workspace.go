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

// Workspace is a directory with all that one run makes: the driver's data, its socket and log, and the
// places where volumes are mounted. Its owner holds a lock on it, so that a later run can tell what a dead
// one left behind from what belongs to a run beside it.
type Workspace struct {
	Dir string
	// Warnings say what an earlier run left and could not be removed.
	Warnings []string
	lock     *os.File
}

// NewWorkspace makes a directory with the prefix in the directory for temporary files, after it has removed
// what runs with the same prefix left there when they died. The prefix is a plain file name.
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
	// Workloads of other users come through here; the driver closes its own directory itself.
	for _, path := range []string{dir, w.Mounts(), w.Data()} {
		if err := errors.Join(os.MkdirAll(path, 0o711), os.Chmod(path, 0o711)); err != nil {
			return nil, errors.Join(err, w.Remove())
		}
	}
	return w, nil
}

// Data is the driver's --data-dir.
func (w *Workspace) Data() string { return filepath.Join(w.Dir, "data") }

// Mounts holds the staging and target directories, as the kubelet's directory does.
func (w *Workspace) Mounts() string { return filepath.Join(w.Dir, "mounts") }

// Socket is the driver's socket.
func (w *Workspace) Socket() string { return filepath.Join(w.Dir, "csi.sock") }

// Log is the file to which the driver's log goes.
func (w *Workspace) Log() string { return filepath.Join(w.Dir, "driver.log") }

// Remove takes down every mount and loop device below the workspace and removes it, whatever state it is
// in. It fails when something could not be removed.
func (w *Workspace) Remove() error {
	return errors.Join(takeDown(w.Dir), w.lock.Close())
}

// lockDir takes the lock of a workspace; it fails with EWOULDBLOCK while its owner lives.
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

// sweep removes the workspaces with the prefix whose owners are dead. A very young one is left alone: its
// owner may be about to lock it.
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

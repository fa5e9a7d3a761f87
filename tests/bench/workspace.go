package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// prefix is the prefix of the name of every directory of a run.
const prefix = "stowage-bench-"

// maxSocketPath is the longest path of a socket, in bytes (unix(7)).
const maxSocketPath = 107

// workspace is a directory for all files of a run. The run holds a lock in it while it is alive, so that a later run
// can detect the leftovers of a killed one.
type workspace struct {
	dir  string
	lock *os.File
}

// newWorkspace creates a workspace below parent, after removing those of killed runs.
func newWorkspace(parent string) (*workspace, error) {
	if err := removeStale(parent); err != nil {
		return nil, fmt.Errorf("an earlier run left something behind that cannot be removed: %w", err)
	}
	dir, err := os.MkdirTemp(parent, prefix)
	if err != nil {
		return nil, err
	}
	if path := floorSocket(dir); len(path) > maxSocketPath {
		return nil, errors.Join(fmt.Errorf("-dir is %s: sockets in it would have paths of %d bytes, and Linux allows %d",
			parent, len(path), maxSocketPath), os.Remove(dir))
	}
	lock, err := os.OpenFile(lockPath(dir), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(err, lock.Close(), os.RemoveAll(dir))
	}
	return &workspace{dir: dir, lock: lock}, nil
}

func lockPath(dir string) string    { return filepath.Join(dir, "lock") }
func floorPath(dir string) string   { return filepath.Join(dir, "floor") }
func floorSocket(dir string) string { return filepath.Join(floorPath(dir), "floor.sock") }

// close removes the workspace and all mounts in it. A successful run must have left no mount and no loop device.
func (w *workspace) close(outcome error) error {
	left, err := sweep(w.dir)
	err = errors.Join(err, w.lock.Close())
	if outcome == nil && len(left) > 0 {
		outcome = fmt.Errorf("left behind when all volumes were deleted: %s", strings.Join(left, ", "))
	}
	return errors.Join(outcome, err)
}

func removeStale(parent string) error {
	dirs, err := filepath.Glob(filepath.Join(parent, prefix+"*"))
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		lock, err := os.Open(lockPath(dir))
		if err != nil {
			continue // Not a workspace, or one that is just being created.
		}
		if unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			_, err = sweep(dir)
		}
		if err := errors.Join(err, lock.Close()); err != nil {
			return err
		}
	}
	return nil
}

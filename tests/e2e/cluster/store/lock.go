package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Lock creates and locks a file. Unlocking removes it; the end of the process only unlocks it.
func Lock(ctx context.Context, path string) (unlock func(), err error) {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		file, err := tryLock(path)
		if err != nil {
			return nil, err
		}
		if file != nil {
			// A process that still finds the removed file creates a new one.
			return func() { _ = os.Remove(path); _ = file.Close() }, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%s is locked by another process: %w", path, ctx.Err())
		case <-tick.C:
		}
	}
}

// tryLock returns nil if another process holds the lock.
func tryLock(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		return nil, file.Close()
	case err != nil:
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), file.Close())
	case !current(file, path):
		// The previous holder removed the file, so that this lock has no effect.
		return nil, file.Close()
	}
	return file, nil
}

func current(file *os.File, path string) bool {
	held, err := file.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(held, there)
}

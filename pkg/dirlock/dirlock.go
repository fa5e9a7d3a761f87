package dirlock

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/failure"
)

// Lock locks a directory or file against other processes until the returned file is closed. Kinds: Busy when another
// process has the lock.
func Lock(path string) (*os.File, error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = failure.Errorf(failure.Busy, "another process uses %s: stop it, or use another directory", path)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s could not be locked: %w", path, err), dir.Close())
	}
	return dir, nil
}

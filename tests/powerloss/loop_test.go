package powerloss

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// patience is how long is waited for what others may hold for a moment.
const patience = 2 * time.Minute

// loop is a loop device over a drive. It is gone with the last that uses it, so also when the process is killed.
type loop struct {
	fd   int
	path string
}

// attach makes a loop device of a file until the end of the test.
func attach(t *testing.T, file string) *loop {
	t.Helper()
	backing, err := unix.Open(file, unix.O_RDWR|unix.O_CLOEXEC, 0)
	must(t, err)
	defer func() { must(t, unix.Close(backing)) }()
	control, err := unix.Open("/dev/loop-control", unix.O_RDWR|unix.O_CLOEXEC, 0)
	must(t, err)
	defer func() { must(t, unix.Close(control)) }()
	var l *loop
	must(t, retry(func() error { l, err = configure(control, backing); return err }, unix.EBUSY))
	t.Cleanup(func() { must(t, unix.Close(l.fd)) })
	return l
}

// configure takes a free loop device. Somebody else may be faster: EBUSY.
func configure(control, backing int) (*loop, error) {
	number, err := unix.IoctlRetInt(control, unix.LOOP_CTL_GET_FREE)
	if err != nil {
		return nil, err
	}
	l := &loop{path: fmt.Sprintf("/dev/loop%d", number)}
	if l.fd, err = unix.Open(l.path, unix.O_RDWR|unix.O_CLOEXEC, 0); err != nil {
		return nil, err
	}
	config := &unix.LoopConfig{Fd: uint32(backing)}
	config.Info.Flags = unix.LO_FLAGS_AUTOCLEAR
	if err := unix.IoctlLoopConfigure(l.fd, config); err != nil {
		return nil, errors.Join(err, unix.Close(l.fd))
	}
	return l, nil
}

// forget makes the kernel drop what it remembers of the drive's contents (BLKFLSBUF).
func (l *loop) forget() error { return unix.IoctlSetInt(l.fd, unix.BLKFLSBUF, 0) }

// mount mounts the drive.
func (l *loop) mount(dir string, f filesystem) error {
	return unix.Mount(l.path, dir, f.name, 0, f.options)
}

// unmount unmounts, and waits for who looks at all mounts.
func unmount(dir string) error {
	return retry(func() error { return unix.Unmount(dir, 0) }, unix.EBUSY)
}

// retry calls until there is an error other than the one, or none, or its patience ends.
func retry(call func() error, while error) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		err := call()
		if !errors.Is(err, while) {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return err
		}
	}
}

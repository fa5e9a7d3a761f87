package powerloss

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// patience is the limit for resources that other processes may hold for a moment.
const patience = 2 * time.Minute

// loop is a loop device over a drive. It is freed with its last user, and thus also when the process is killed.
type loop struct {
	fd   int
	path string
}

// attach attaches a file to a loop device until the end of the test.
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

// configure takes a free loop device. If another process is faster, it returns EBUSY.
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

// forget makes the kernel drop its cache of the drive (BLKFLSBUF).
func (l *loop) forget() error { return unix.IoctlSetInt(l.fd, unix.BLKFLSBUF, 0) }

// mount mounts the drive.
func (l *loop) mount(dir string, f filesystem) error {
	return unix.Mount(l.path, dir, f.name, 0, f.options)
}

// unmount unmounts a directory, and waits for processes that inspect all mounts.
func unmount(dir string) error {
	return retry(func() error { return unix.Unmount(dir, 0) }, unix.EBUSY)
}

// retry repeats the call while it returns the given error, until its patience ends.
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

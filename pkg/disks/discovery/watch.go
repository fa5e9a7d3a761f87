package discovery

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Watch calls changed whenever the kernel reports a block device event (netlink(7), NETLINK_KOBJECT_UEVENT), or a mount
// or unmount here (proc_pid_mountinfo(5)). It returns when the context ends or either source fails. Events may be lost,
// so the caller must also look at intervals.
func Watch(ctx context.Context, changed func()) error {
	events, err := uevents()
	if err != nil {
		return fmt.Errorf("listen to the kernel's events: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = events.Close() }) // This ends reading.
	defer stop()
	ended := make(chan error, 1)
	go func() {
		defer cancel()
		ended <- watchMounts(ctx, changed)
	}()
	err = readEvents(events, changed)
	if ctx.Err() != nil {
		err = nil
	}
	cancel()
	return errors.Join(err, <-ended)
}

// uevents opens the socket on which the kernel reports device events.
func uevents() (*os.File, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK,
		unix.NETLINK_KOBJECT_UEVENT)
	if err != nil {
		return nil, err
	}
	const fromKernel = 1 // the group; 2 is udev's
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: fromKernel}); err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), "uevents"), nil
}

func readEvents(events *os.File, changed func()) error {
	buffer := make([]byte, 16<<10)
	for {
		length, err := events.Read(buffer)
		switch {
		case errors.Is(err, unix.ENOBUFS): // Some were lost.
			changed()
		case err != nil:
			return err
		case bytes.Contains(buffer[:length], []byte("SUBSYSTEM=block\x00")):
			changed()
		}
	}
}

// watchMounts waits for changes of the mount table, which poll reports as a priority event.
func watchMounts(ctx context.Context, changed func()) error {
	table, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	defer func() { _ = table.Close() }() // open for reading only
	end, wake, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = end.Close() }() // nobody writes
	stop := context.AfterFunc(ctx, func() { _ = wake.Close() })
	defer stop()
	for {
		fds := []unix.PollFd{{Fd: int32(table.Fd()), Events: unix.POLLPRI}, {Fd: int32(end.Fd()), Events: unix.POLLIN}}
		if _, err := unix.Poll(fds, -1); err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		if fds[1].Revents != 0 {
			return nil
		}
		if fds[0].Revents&unix.POLLPRI != 0 {
			changed()
		}
	}
}

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/tests/vm/internal/wire"
)

// place is a filesystem to mount.
type place struct{ source, path, fsType, options string }

// early returns the filesystems that are needed to find the disk.
func early() []place {
	return []place{{"proc", "/proc", "proc", ""}, {"dev", "/dev", "devtmpfs", "mode=0755"}}
}

// late returns the other usual filesystems.
func late() []place {
	return []place{
		{"sys", "/sys", "sysfs", ""},
		{"pts", "/dev/pts", "devpts", "mode=0620,ptmxmode=0666"},
		{"shm", "/dev/shm", "tmpfs", "mode=1777"},
		{"run", "/run", "tmpfs", "mode=0755"},
	}
}

// modules returns the modules that the kernel cannot load by itself on first use.
func modules() []string {
	return []string{"virtio_pci", "virtiofs", "virtio_net", "virtio_blk", "loop", "dm_mod"}
}

func mounts(places []place) error {
	for _, p := range places {
		if err := os.MkdirAll(p.path, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(p.source, p.path, p.fsType, 0, p.options); err != nil {
			return fmt.Errorf("mount %s: %w", p.path, err)
		}
	}
	return nil
}

// setUp sets up a usual Linux environment, and mounts the shared folder.
func setUp() error {
	if err := mounts(late()); err != nil {
		return err
	}
	if err := errors.Join(links(), run(append([]string{"/sbin/modprobe", "-a"}, modules()...)...)); err != nil {
		return err
	}
	if err := mounts([]place{{wire.Share, wire.SharePoint, "virtiofs", ""}}); err != nil {
		return err
	}
	// QEMU's user network exposes the host's loopback address as its gateway: 10.0.2.2.
	return errors.Join(unix.Sethostname([]byte("guest")),
		address("lo", netip.MustParseAddr("127.0.0.1"), 8), address("eth0", netip.MustParseAddr("10.0.2.15"), 24))
}

// links creates the links that udev would create.
func links() error {
	for name, target := range map[string]string{
		"/dev/fd": "/proc/self/fd", "/dev/stdin": "/proc/self/fd/0", "/dev/stdout": "/proc/self/fd/1",
		"/dev/stderr": "/proc/self/fd/2",
	} {
		if err := os.Symlink(target, name); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// address configures an interface's address and brings it up (netdevice(7)).
func address(name string, ip netip.Addr, bits int) error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(socket) }()
	mask := ^uint32(0) << (32 - bits)
	for _, change := range []struct {
		request uint
		address []byte
	}{
		{unix.SIOCSIFADDR, ip.AsSlice()},
		{unix.SIOCSIFNETMASK, []byte{byte(mask >> 24), byte(mask >> 16), byte(mask >> 8), byte(mask)}},
	} {
		r, err := unix.NewIfreq(name)
		if err == nil {
			err = r.SetInet4Addr(change.address)
		}
		if err == nil {
			err = unix.IoctlIfreq(socket, change.request, r)
		}
		if err != nil {
			return fmt.Errorf("address of %s: %w", name, err)
		}
	}
	r, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return wrap("bring up "+name, unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, r))
}

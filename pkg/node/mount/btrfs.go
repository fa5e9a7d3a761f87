package mount

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// proveBtrfs checks that a btrfs is on the expected device, and on no other: its contents may name more than its
// superblock. Its root does not have the number of a device. The mount need not be on the named device either: instead
// of a copy, kernels before 6.7 mount the original with the same UUID if that is mounted already.
func proveBtrfs(mount int, want Filesystem) error {
	id, err := btrfsID(mount)
	if err != nil {
		return backends.Errorf(backends.Unavailable, "asking the btrfs mounted from %q for its UUID: %w", want.Source, err)
	}
	devices, err := filepath.Glob("/sys/fs/btrfs/" + id + "/devices/*/dev")
	if err != nil {
		return err
	}
	wanted, numbers := fmt.Sprintf("%d:%d", unix.Major(want.Dev), unix.Minor(want.Dev)), make([]string, 0, len(devices))
	for _, path := range devices {
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return backends.Errorf(backends.Unavailable, "asking which devices the btrfs mounted from %q is on: %w", want.Source,
				err)
		}
		numbers = append(numbers, strings.TrimSpace(string(text)))
	}
	shown := strings.Join(numbers, " and ")
	switch {
	case !slices.Contains(numbers, wanted):
		return backends.Errorf(backends.Unavailable,
			"%q is not the device that was proven: its btrfs %s is on %s, expected %s; "+
				"is a filesystem with the same UUID mounted on this node, and the kernel older than 6.7?",
			want.Source, id, shown, wanted)
	case len(numbers) > 1:
		return backends.Errorf(backends.Unavailable,
			"the btrfs %s on %q is also on other devices, which are no part of this volume: it is on %s, expected %s only", id,
			want.Source, shown, wanted)
	}
	return nil
}

// btrfsInfo is the required part of struct btrfs_ioctl_fs_info_args of linux/btrfs.h.
type btrfsInfo struct {
	maxID, devices uint64
	id             [16]byte
	_              [992]byte
}

// btrfsID returns the UUID under which the kernel lists a mounted btrfs in sysfs.
func btrfsID(mount int) (string, error) {
	const fsInfo = 0x8400941f // BTRFS_IOC_FS_INFO: _IOR(0x94, 31, struct btrfs_ioctl_fs_info_args)
	root, err := unix.Openat(mount, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", os.NewSyscallError("openat", err)
	}
	defer closeFd(root)
	var info btrfsInfo
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(root), fsInfo, uintptr(unsafe.Pointer(&info))); errno != 0 {
		return "", os.NewSyscallError("BTRFS_IOC_FS_INFO", errno)
	}
	id := info.id
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:]), nil
}

package orchestrator

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Missing returns the local backend's requirements that this machine lacks, each with a way to satisfy it.
func Missing() []string {
	var missing []string
	for _, check := range []func() []string{missingRoot, missingKernel, missingLoops, missingTools} {
		missing = append(missing, check()...)
	}
	return missing
}

func missingRoot() []string {
	if os.Getuid() == 0 {
		return nil
	}
	return []string{fmt.Sprintf("root: this runs as user %d and must mount; run it with sudo", os.Getuid())}
}

// missingKernel requires Linux 5.14, for mount_setattr(2) and similar calls of the driver.
func missingKernel() []string {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return []string{fmt.Sprintf("the kernel's version: %v", err)}
	}
	var major, minor int
	release := unix.ByteSliceToString(name.Release[:])
	if _, err := fmt.Sscanf(release, "%d.%d", &major, &minor); err == nil && (major > 5 || major == 5 && minor >= 14) {
		return nil
	}
	return []string{"Linux 5.14 or newer: this is " + release}
}

// missingLoops requires loop devices. Without root their existence cannot be checked.
func missingLoops() []string {
	if os.Getuid() != 0 {
		return nil
	}
	const control = "/dev/loop-control"
	file, err := os.OpenFile(control, os.O_RDWR, 0)
	if err != nil {
		return []string{fmt.Sprintf(
			"loop devices (%v): run modprobe loop, or in a container give it %s and /dev/loop* (--privileged)", err, control)}
	}
	defer file.Close() //nolint:errcheck // it was only asked
	if _, err := unix.IoctlRetInt(int(file.Fd()), unix.LOOP_CTL_GET_FREE); err != nil {
		return []string{fmt.Sprintf("the right to use loop devices (LOOP_CTL_GET_FREE: %v): the process needs CAP_SYS_ADMIN",
			err)}
	}
	return nil
}

// missingTools checks for the programs that the driver runs, in the search path of Debian's root.
func missingTools() []string {
	var missing []string
	for _, tool := range []struct{ name, pkg string }{
		{"mkfs.ext4", "e2fsprogs"}, {"e2fsck", "e2fsprogs"}, {"resize2fs", "e2fsprogs"},
		{"mkfs.xfs", "xfsprogs"}, {"xfs_growfs", "xfsprogs"}, {"xfs_repair", "xfsprogs"},
	} {
		if !installed(tool.name) {
			missing = append(missing, fmt.Sprintf("the program %s: apt-get install %s", tool.name, tool.pkg))
		}
	}
	return missing
}

func installed(name string) bool {
	if _, err := exec.LookPath(name); err == nil {
		return true
	}
	for _, dir := range []string{"/usr/sbin", "/sbin"} {
		if _, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}

// GrowsExt4Online reports whether this process may grow a mounted ext4 (ext4's resize ioctl requires CAP_SYS_RESOURCE).
// The driver, its child, has the same rights.
func GrowsExt4Online() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return false
	}
	return data[0].Effective&(1<<unix.CAP_SYS_RESOURCE) != 0
}

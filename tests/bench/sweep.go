package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// sweep unmounts all mounts below dir, detaches the loop devices of files below it, and removes it. It returns the
// mounts and loop devices that it found. It removes nothing while a mount remains.
func sweep(dir string) (found []string, err error) {
	mounts, errMounts := unmountBelow(dir)
	loops, errLoops := detachBelow(dir)
	found = append(mounts, loops...)
	if err := errors.Join(errMounts, errLoops); err != nil {
		return found, err
	}
	return found, os.RemoveAll(dir)
}

func unmountBelow(dir string) (found []string, err error) {
	mounts, err := mountinfo.GetMounts(mountinfo.PrefixFilter(dir))
	if err != nil {
		return nil, err
	}
	slices.Reverse(mounts) // The last mount is on top.
	for _, mount := range mounts {
		found = append(found, "a mount at "+mount.Mountpoint)
		if e := unix.Unmount(mount.Mountpoint, unix.UMOUNT_NOFOLLOW); e != nil {
			err = errors.Join(err, fmt.Errorf("unmounting %s: %w", mount.Mountpoint, e))
		}
	}
	return found, err
}

// detachBelow detaches the loop devices of files below dir, and returns them.
func detachBelow(dir string) (found []string, err error) {
	attached, err := attachedBelow(dir)
	for device, file := range attached {
		found = append(found, fmt.Sprintf("%s with %s", device, file))
		err = errors.Join(err, detach(device))
	}
	return found, err
}

// attachedBelow finds loop devices by their backing file (Documentation/ABI/testing/sysfs-block-loop).
func attachedBelow(dir string) (files map[string]string, err error) {
	names, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	files = map[string]string{}
	for _, name := range names {
		file, e := os.ReadFile(name)
		if e != nil || !strings.HasPrefix(string(file), dir+"/") {
			continue // Detached in the meantime, or of another owner.
		}
		files["/dev/"+strings.Split(name, "/")[3]] = strings.TrimSpace(string(file))
	}
	return files, err
}

// detach frees a loop device. An already free device is no error.
func detach(device string) error {
	file, err := os.OpenFile(device, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	err = unix.IoctlSetInt(int(file.Fd()), unix.LOOP_CLR_FD, 0)
	if errors.Is(err, unix.ENXIO) {
		err = nil
	}
	if err != nil {
		err = fmt.Errorf("detaching %s: %w", device, err)
	}
	return errors.Join(err, file.Close())
}

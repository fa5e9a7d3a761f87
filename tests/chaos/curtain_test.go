package chaos

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A mount namespace isolates everything except loop devices. The worker's namespace therefore has a curtain over
// /sys/block: a tmpfs with links to the loop devices that no other process uses. Without it, the number of calls in a
// scan of all loop devices would depend on the machine's users, and the scan would hang forever at a device whose file
// is on their unresponsive filesystem. Because a device of another process may become the world's at any moment, the
// curtain is updated before each call, and when a victim begins to scan.

const (
	sysBlock     = "/sys/block"
	virtualBlock = "/sys/devices/virtual/block"
	furtherLoops = 16 // devices that may be created later have dangling links
)

// hangCurtain hides loop devices of other processes from this process and its victims.
func hangCurtain() error {
	if err := unix.Mount("chaos", sysBlock, "tmpfs", 0, ""); err != nil {
		return fmt.Errorf("mount a tmpfs on %s: %w", sysBlock, err)
	}
	return nil
}

// drawCurtain updates the curtain.
func (w *world) drawCurtain() error {
	loops, err := filepath.Glob(virtualBlock + "/loop[0-9]*")
	if err != nil {
		return err
	}
	for n := range len(loops) + furtherLoops {
		if err := w.drawLoop("loop" + strconv.Itoa(n)); err != nil {
			return err
		}
	}
	return nil
}

// drawLoop shows or hides one loop device.
func (w *world) drawLoop(name string) error {
	file, err := os.ReadFile(filepath.Join(virtualBlock, name, "loop/backing_file"))
	link := filepath.Join(sysBlock, name)
	if err == nil && !strings.HasPrefix(string(file), w.root+"/") {
		err := os.Remove(link)
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		return err
	}
	if _, err := os.Lstat(link); err == nil {
		return nil
	}
	return os.Symlink(filepath.Join(virtualBlock, name), link)
}

// rootName returns the name of a worker's directory. The name is visible in the path of a loop device's file even when
// the mount namespace is gone.
func rootName(pid int) string { return fmt.Sprintf("stowage-chaos-%d", pid) }

// sweepDead frees the loop devices of runs that were killed.
func sweepDead() error {
	files, err := filepath.Glob(virtualBlock + "/loop[0-9]*/loop/backing_file")
	if err != nil {
		return err
	}
	ours := regexp.MustCompile(`/stowage-chaos-(\d+)/`)
	for _, file := range files {
		backing, err := os.ReadFile(file)
		match := ours.FindSubmatch(backing)
		if err != nil || match == nil {
			continue
		}
		if _, err := os.Stat("/proc/" + string(match[1])); err == nil {
			continue
		}
		if err := free(filepath.Base(filepath.Dir(filepath.Dir(file)))); err != nil {
			return err
		}
	}
	return nil
}

// free detaches a loop device. An unused device is no error.
func free(name string) error {
	device, err := os.Open("/dev/" + name)
	if err != nil {
		return err
	}
	defer func() { _ = device.Close() }() // open for reading only
	err = unix.IoctlSetInt(int(device.Fd()), unix.LOOP_CLR_FD, 0)
	if errors.Is(err, unix.ENXIO) {
		return nil
	}
	return err
}

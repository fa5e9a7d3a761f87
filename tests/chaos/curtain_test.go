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

// Loop devices are the one thing that a mount namespace does not keep apart. So a curtain hangs over /sys/block
// in the worker's namespace: a tmpfs with links to the loop devices that nobody else uses. Without it a scan of
// all loop devices makes as many calls as the machine has users, and stops for ever at one whose file is on a
// filesystem of theirs that does not answer. Because what is somebody's now may be the world's in a moment, the
// curtain is drawn anew before each call, and when a victim begins to look.

const (
	sysBlock     = "/sys/block"
	virtualBlock = "/sys/devices/virtual/block"
	furtherLoops = 16 // so many that may be made later have links that lead nowhere yet
)

// hangCurtain hides the loop devices of others from this process and its victims.
func hangCurtain() error {
	if err := unix.Mount("chaos", sysBlock, "tmpfs", 0, ""); err != nil {
		return fmt.Errorf("mount a tmpfs on %s: %w", sysBlock, err)
	}
	return nil
}

// drawCurtain brings it up to date.
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

// drawLoop shows one loop device, or hides it.
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

// rootName is the name of a worker's directory. It shows in the name of the file of a loop device even when
// the mount namespace is gone.
func rootName(pid int) string { return fmt.Sprintf("stowage-chaos-%d", pid) }

// sweepDead frees the loop devices of runs whose process is gone, which were killed.
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

// free detaches a loop device; one that holds nothing is free.
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

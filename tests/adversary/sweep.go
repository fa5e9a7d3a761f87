package adversary

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/loops"
	"github.com/stowage-csi/stowage/tests/attached"
)

// prefix is the prefix of the worlds' directories.
const prefix = "stowage-adversary"

// sweep frees the loop devices of worlds whose runs were killed. If a filesystem was frozen then, for a snapshot, the
// kernel keeps it although its mounts are gone with the run's namespace. It is mounted once more, to thaw it.
func sweep() {
	names, _ := filepath.Glob("/sys/block/loop*") // the pattern is right
	for _, name := range names {
		d, holds, err := loops.Shown("/dev/" + filepath.Base(name))
		if err == nil && holds && isLeft(d) { // the next run frees those that cannot be determined now
			free(d)
		}
	}
}

// free frees a loop device, unless it holds another file by now. While it is open it keeps its file.
func free(d loops.Device) {
	node, err := os.Open(d.Path)
	if err != nil {
		return
	}
	if now, holds, err := loops.Shown(d.Path); err == nil && holds && now.File == d.File {
		thaw(d.Path)
		_ = unix.IoctlSetInt(int(node.Fd()), unix.LOOP_CLR_FD, 0) // the next run retries
	}
	_ = node.Close() // it was open for reading
}

// isLeft reports whether a loop device is of a world whose owner is dead. Reading sysfs waits for no server. If a
// file's filesystem is mounted nowhere any more, the file has no path here, and none below the temporary files of any
// run. Only then the device is asked for the name by which it was attached.
func isLeft(d loops.Device) bool {
	file := strings.TrimSuffix(d.File, loops.Deleted)
	if strings.HasPrefix(file, strings.TrimSuffix(filepath.Dir(os.TempDir()), "/")+"/") {
		return abandoned(file)
	}
	name, err := attached.Name(d.Path, file)
	if errors.Is(err, unix.ENOTCONN) { // A world's server, which ended with it, had a directory of the world's name.
		return noneLives(filepath.Dir(os.TempDir()), file)
	}
	return err == nil && abandoned(name)
}

// fithaw is FITHAW, _IOWR('X', 120, int).
const fithaw = 0xc0045878

// thaw thaws the filesystem on a device, if there is one.
func thaw(device string) {
	dir, err := os.MkdirTemp("", prefix+"-thaw")
	if err != nil {
		return
	}
	defer os.Remove(dir) //nolint:errcheck // it is empty, or its mount goes with this process
	for _, kind := range []string{"ext4", "xfs", "btrfs"} {
		if unix.Mount(device, dir, kind, 0, "") != nil {
			continue
		}
		if root, err := os.Open(dir); err == nil {
			_ = unix.IoctlSetInt(int(root.Fd()), fithaw, 0) // nearly always it is not frozen
			_ = root.Close()
		}
		_ = unix.Unmount(dir, 0)
		return
	}
}

// abandoned reports whether a path is below a world's directory whose owner is dead.
func abandoned(path string) bool {
	rest, ok := strings.CutPrefix(path, filepath.Join(os.TempDir(), prefix+"-"))
	if !ok {
		return false
	}
	number, _, _ := strings.Cut(rest, "/")
	return !isHeld(filepath.Join(os.TempDir(), prefix+"-"+number, "owner.lock"))
}

// noneLives reports whether a path begins with a world's name, and no run below the runs directory has a live world of
// that name. The path does not say which run it was of.
func noneLives(runs, path string) bool {
	world, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	locks, err := filepath.Glob(filepath.Join(runs, "*", world, "owner.lock"))
	return err == nil && strings.HasPrefix(world, prefix+"-") && !slices.ContainsFunc(locks, isHeld)
}

// isHeld reports whether a process has the lock of a file, or whether that is unknown.
func isHeld(path string) bool {
	lock, err := os.Open(path)
	if err != nil {
		return !os.IsNotExist(err)
	}
	defer lock.Close() //nolint:errcheck // the lock goes with it
	return unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil
}

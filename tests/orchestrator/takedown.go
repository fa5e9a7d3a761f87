package orchestrator

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// fithaw is FITHAW, _IOWR('X', 120, int) (ioctl_fs(2)).
const fithaw = 0xc0045878

// takeDown removes a directory with all mounts, the last first, and loop devices that depend on it.
func takeDown(dir string) error {
	var problems []error
	loops, err := loopsOf([]string{dir})
	problems = append(problems, err)
	mounts, err := mountsOf([]string{dir}, loops)
	problems = append(problems, err)
	for _, m := range slices.Backward(mounts) {
		thaw(m.Mountpoint)
		if err := unmount(m.Mountpoint); err != nil {
			problems = append(problems, fmt.Errorf("unmount %s: %w", m.Mountpoint, err))
		}
	}
	for _, l := range loops {
		problems = append(problems, l.detach())
	}
	// While a mount remains, the removal would delete the volume's content instead of the directory.
	if err := errors.Join(problems...); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

// lookers limits the time that other processes may keep a mount busy: a process that inspects all mounts or loop
// devices has each open for a moment.
const lookers = 2 * time.Minute

// unmount unmounts, and waits for such processes.
func unmount(mountpoint string) error {
	for begun := time.Now(); ; <-time.After(10 * time.Millisecond) {
		err := unix.Unmount(mountpoint, unix.UMOUNT_NOFOLLOW)
		if !errors.Is(err, unix.EBUSY) || time.Since(begun) > lookers {
			return err
		}
	}
}

// thaw thaws a filesystem that was frozen for a snapshot when the driver was killed. Until then all its writers hang,
// and so does the unmount. Usually the filesystem is not frozen, which is an error that thaw ignores.
func thaw(mountpoint string) {
	dir, err := os.Open(mountpoint)
	if err != nil {
		return
	}
	_ = unix.IoctlSetInt(int(dir.Fd()), fithaw, 0)
	_ = dir.Close()
}

// Thaw thaws every filesystem that is mounted below the workspace.
func (w *Workspace) Thaw() {
	mounts, err := mountsOf([]string{w.Dir}, nil)
	if err != nil {
		return
	}
	for _, m := range mounts {
		thaw(m.Mountpoint)
	}
}

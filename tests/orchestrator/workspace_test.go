package orchestrator

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func mkfs(t *testing.T, image string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "mkfs.ext4", "-q", image).CombinedOutput(); err != nil {
		t.Fatalf("mkfs.ext4: %v\n%s", err, out)
	}
}

// TestSweep lets a workspace's owner die with a frozen filesystem mounted twice. The next run must remove all of it,
// but not the workspace of a living owner.
func TestSweep(t *testing.T) {
	dead, alive := workspace(t), workspace(t)
	image := write(t, filepath.Join(dead.Data(), "image"))
	if err := os.Truncate(image, 16<<20); err != nil {
		t.Fatal(err)
	}
	mkfs(t, image)
	device := attach(t, image)
	at, again := mkdir(t, filepath.Join(dead.Mounts(), "a")), mkdir(t, filepath.Join(dead.Mounts(), "b"))
	mount(t, "/dev/"+device, at, "ext4", 0)
	mount(t, at, again, "", unix.MS_BIND)
	freeze(t, at)
	if err := unix.Flock(int(dead.lock.Fd()), unix.LOCK_UN); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-time.Hour)
	for _, dir := range []string{dead.Dir, alive.Dir} {
		if err := os.Chtimes(dir, old, old); err != nil {
			t.Fatal(err)
		}
	}

	if warnings := sweep(testPrefix); len(warnings) > 0 {
		t.Errorf("sweep could not remove: %q", warnings)
	}
	if _, err := os.Lstat(dead.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the dead owner's workspace is still there (%v)", err)
	}
	if leaks, err := Leaks(dead.Data(), dead.Mounts()); err != nil || len(leaks) > 0 {
		t.Errorf("the dead owner's workspace left %q, error %v", leaks, err)
	}
	if _, err := os.Lstat(alive.Data()); err != nil {
		t.Errorf("the living owner's workspace was touched: %v", err)
	}
}

func freeze(t *testing.T, mountpoint string) {
	t.Helper()
	dir, err := os.Open(mountpoint)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	const fifreeze = 0xc0045877 // FIFREEZE, _IOWR('X', 119, int)
	if err := unix.IoctlSetInt(int(dir.Fd()), fifreeze, 0); err != nil {
		t.Fatal(err)
	}
}

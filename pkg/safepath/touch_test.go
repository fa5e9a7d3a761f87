package safepath

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// as runs a function as another user, on a thread of its own.
func as(user int, do func() error) error {
	ended := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // without an unlock: no other goroutine gets the thread
		ended <- errors.Join(unix.Setfsuid(user), do())
	}()
	return <-ended
}

// The time is the filesystem's, not this machine's. Only a file's owner may set its times to a given value, but every
// user with write permission may set them to the present.
func TestTouchTakesTheTimeOfTheFilesystem(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("NOT RUN: becoming another user needs root")
	}
	path := filepath.Join(t.TempDir(), "file")
	if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chmod(path, 0o666)); err != nil {
		t.Fatal(err)
	}
	old := unix.Timespec{Sec: 1}
	if err := unix.UtimesNanoAt(unix.AT_FDCWD, path, []unix.Timespec{old, old}, 0); err != nil {
		t.Fatal(err)
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dir.Close() }) // It was read only.
	if err := as(65534, func() error { return NewRoot(dir).Touch("file") }); err != nil {
		t.Errorf("who may write to the file, and is not its owner: %v", err)
	}
	if info, err := os.Stat(path); err != nil || info.ModTime().Unix() == old.Sec {
		t.Errorf("the file is of %v (%v), want another time", info.ModTime(), err)
	}
}

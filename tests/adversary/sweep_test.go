package adversary

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/loops"
	"github.com/stowage-csi/stowage/tests/orchestrator"
	"github.com/stowage-csi/stowage/tests/stall"
	"github.com/stowage-csi/stowage/tests/testfs"
)

// TestSweepWaitsForNoStranger has a foreign loop device hold a file on a server that does not answer: below the
// temporary files, and elsewhere.
func TestSweepWaitsForNoStranger(t *testing.T) {
	server := stall.Serve(t)
	outside, err := os.MkdirTemp("/", prefix) //nolint:usetesting // It is to be where no temporary files are.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(outside) }) // If it is not empty, the test has failed.
	for name, place := range map[string]string{"temporary": t.TempDir(), "elsewhere": outside} {
		t.Run(name, func(t *testing.T) {
			showAt(t, place, server.Dir)
			file := filepath.Join(place, "file")
			if err := os.WriteFile(file, make([]byte, 1<<20), 0o600); err != nil {
				t.Fatal(err)
			}
			device := testfs.Attach(t, file)
			t.Cleanup(func() { server.Continue(t) }) // or it is not detached
			server.Stop(t)
			swept := make(chan struct{})
			go func() { defer close(swept); sweep() }()
			select {
			case <-swept:
			case <-time.After(patient().lists):
				t.Error("it waits for the server")
			}
			if shown, holds, err := loops.Shown(device); !holds || shown.File != file {
				t.Errorf("%s holds %q by now (%t, %v)", device, shown.File, holds, err)
			}
		})
	}
}

// showAt shows a directory at another place too, until the end of the test.
func showAt(t *testing.T, place, dir string) {
	t.Helper()
	if err := unix.Mount(dir, place, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(place, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
			t.Error(err)
		}
	})
}

// TestIsLeft checks the loop devices for which sysfs alone is sufficient.
func TestIsLeft(t *testing.T) {
	alive, err := orchestrator.NewWorkspace(prefix)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := alive.Remove(); err != nil {
			t.Error(err)
		}
	})
	dead, of := alive.Dir+"0", filepath.Dir(os.TempDir())
	for file, want := range map[string]bool{
		filepath.Join(dead, "memory/0"):                 true,
		filepath.Join(dead, "memory/0") + loops.Deleted: true,
		filepath.Join(alive.Dir, "memory/0"):            false,
		filepath.Join(t.TempDir(), "image"):             false,
		filepath.Join(of, "another-run", prefix+"-3/0"): false,
	} {
		if got := isLeft(loops.Device{File: file}); got != want {
			t.Errorf("%s is left: %t, want %t", file, got, want)
		}
	}
}

// attach makes a loop device hold a new file with a unique name, as a run does that is killed then.
func attach(t *testing.T, file string) (device string) {
	t.Helper()
	if err := os.WriteFile(file, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	device = testfs.Run(t, "losetup", "--find", "--show", file)
	t.Cleanup(func() {
		if d, holds, err := loops.Shown(device); err == nil && holds && filepath.Base(d.File) == filepath.Base(file) {
			free(d)
		}
	})
	return device
}

// sweepUntilFree sweeps until a loop device holds nothing: a query may come at a bad time.
func sweepUntilFree(t *testing.T, device string) {
	t.Helper()
	for deadline := time.Now().Add(patient().lists); ; <-time.After(time.Millisecond) {
		sweep()
		shown, holds, err := loops.Shown(device)
		if err == nil && !holds {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s still holds %q (%v)", device, shown.File, err)
		}
	}
}

// TestSweepFreesWhatIsMountedNowhere makes loop devices hold a file of a dead world and one of another run, on
// filesystems that have gone with their namespaces.
func TestSweepFreesWhatIsMountedNowhere(t *testing.T) {
	testfs.NeedRoot(t)
	another := filepath.Join(os.TempDir(), "another")
	left, others := orphan(t, os.TempDir()), orphan(t, another)
	sweepUntilFree(t, left)
	if shown, holds, err := loops.Shown(others); err != nil || !holds {
		t.Errorf("%s holds %q by now (%t, %v)", others, shown.File, holds, err)
	}
}

// orphan makes a loop device hold a file of a world in a directory, whose filesystem is mounted nowhere any more.
func orphan(t *testing.T, dir string) (device string) {
	t.Helper()
	world := filepath.Join(dir, prefix+"-0")
	err := errors.Join(os.MkdirAll(world, 0o700), unix.Mount("adversary", world, "tmpfs", 0, ""))
	if err != nil {
		t.Fatal(err)
	}
	device = attach(t, filepath.Join(world, t.Name()))
	if err := errors.Join(unix.Unmount(world, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW), os.Remove(world)); err != nil {
		t.Error(err)
	}
	return device
}

// TestSweepFreesWhatAServerLeft makes a loop device hold a file of a dead world's server, which is gone with its mount.
func TestSweepFreesWhatAServerLeft(t *testing.T) {
	end, err := stall.Alone()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(end)
	server, err := stall.ServeAt(t.TempDir(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	world := filepath.Join(server.Dir, prefix+"-0")
	if err := os.Mkdir(world, 0o700); err != nil {
		t.Error(err)
	}
	device := attach(t, filepath.Join(world, t.Name()))
	if err := server.Close(); err != nil {
		t.Error(err)
	}
	sweepUntilFree(t, device)
}

// TestNoneLives distinguishes the worlds of servers that are gone from those of concurrent runs.
func TestNoneLives(t *testing.T) {
	runs := t.TempDir()
	for world, lives := range map[string]bool{prefix + "-1": true, prefix + "-2": false} {
		dir := filepath.Join(runs, "ns7", world)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		lock, err := os.Create(filepath.Join(dir, "owner.lock"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = lock.Close() }) // nothing was written to it
		if lives && unix.Flock(int(lock.Fd()), unix.LOCK_EX) != nil {
			t.Fatal("the lock cannot be had")
		}
	}
	for path, want := range map[string]bool{
		"/" + prefix + "-1/image":      false,
		"/" + prefix + "-2/image":      true,
		"/" + prefix + "-3/image":      true,
		"/pool/" + prefix + "-3/image": false,
		"/image":                       false,
	} {
		if got := noneLives(runs, path); got != want {
			t.Errorf("nobody lives whose %s it was: %t, want %t", path, got, want)
		}
	}
}

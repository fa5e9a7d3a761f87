package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func mustMake(t *testing.T, parent string) *workspace {
	t.Helper()
	w, err := newWorkspace(parent)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// mess creates the leftovers of a killed driver in the workspace.
func mess(t *testing.T, dir string) {
	t.Helper()
	lower, upper := filepath.Join(dir, "lower"), filepath.Join(dir, "upper")
	for _, path := range []string{lower, upper} {
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	image, err := createImage(filepath.Join(dir, "image"), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { image.Close() })
	for range 2 { // One on top of the other.
		if err := bindByMount(lower, upper); err != nil {
			t.Fatal(err)
		}
	}
	device, err := attachLoop(image, 0)
	if err != nil {
		t.Fatal(err)
	}
	// Without LO_FLAGS_AUTOCLEAR it stays attached, as a driver's devices do when it is killed.
	if err := unix.IoctlLoopSetStatus64(int(device.Fd()), &unix.LoopInfo64{}); err != nil {
		t.Fatal(err)
	}
	if err := device.Close(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := detachBelow(dir); err != nil {
			t.Error(err)
		}
	})
}

func TestWorkspaceReportsAndRemovesWhatIsLeft(t *testing.T) {
	needRoot(t)
	for name, outcome := range map[string]error{"success": nil, "failure": errors.New("the run failed")} {
		t.Run(name, func(t *testing.T) {
			parent := shortDir(t)
			w := mustMake(t, parent)
			mess(t, w.dir)
			err := w.close(outcome)
			switch {
			case outcome != nil && !errors.Is(err, outcome):
				t.Errorf("error is %v, want %v", err, outcome)
			case outcome == nil && (err == nil || strings.Count(err.Error(), "a mount at") != 2 ||
				!strings.Contains(err.Error(), "/dev/loop")):
				t.Errorf("error is %v, want one that names two mounts and a loop device", err)
			}
			mustBeEmpty(t, parent)
		})
	}
}

func TestWorkspaceOfAKilledRunIsRemoved(t *testing.T) {
	needRoot(t)
	parent := shortDir(t)
	killed, alive := mustMake(t, parent), mustMake(t, parent)
	mess(t, killed.dir)
	if err := killed.lock.Close(); err != nil { // As the kernel does when a process ends.
		t.Fatal(err)
	}
	foreign := filepath.Join(parent, prefix+"without-lock")
	if err := os.Mkdir(foreign, 0o700); err != nil {
		t.Fatal(err)
	}
	next := mustMake(t, parent)
	for dir, want := range map[string]bool{killed.dir: false, alive.dir: true, next.dir: true, foreign: true} {
		if _, err := os.Stat(dir); (err == nil) != want {
			t.Errorf("%s: %v, want it to be there: %t", filepath.Base(dir), err, want)
		}
	}
	for _, w := range []*workspace{alive, next} {
		if err := w.close(nil); err != nil {
			t.Error(err)
		}
	}
}

func TestSweepKeepsToItsDirectory(t *testing.T) {
	needRoot(t)
	parent := shortDir(t)
	own, other := filepath.Join(parent, "a"), filepath.Join(parent, "ab")
	for _, dir := range []string{own, other} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		mess(t, dir)
	}
	t.Cleanup(func() {
		if _, err := sweep(other); err != nil {
			t.Error(err)
		}
	})
	found, err := sweep(own)
	if err != nil || len(found) != 3 {
		t.Errorf("found %q, error %v; want two mounts and a loop device", found, err)
	}
	if found, err := unmountBelow(other); len(found) != 2 || err != nil {
		t.Errorf("beside it: %q, %v; want two mounts still there", found, err)
	}
	if _, err := os.Stat(own); !errors.Is(err, unix.ENOENT) {
		t.Errorf("the directory is still there: %v", err)
	}
}

func TestWorkspaceRefusesPathsThatAreTooLongForSockets(t *testing.T) {
	parent := filepath.Join(shortDir(t), strings.Repeat("x", 100))
	if err := os.Mkdir(parent, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := newWorkspace(parent); err == nil || !strings.Contains(err.Error(), "Linux allows 107") {
		t.Errorf("error is %v, want one that says how long a path may be", err)
	}
	mustBeEmpty(t, parent)
}

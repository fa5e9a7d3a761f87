package orchestrator

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const testPrefix = "stowage-orchestrator-test"

func workspace(t *testing.T) *Workspace {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("NOT ROOT: this test mounts and attaches loop devices")
	}
	w, err := NewWorkspace(testPrefix)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Remove(); err != nil {
			t.Errorf("the workspace could not be removed: %v", err)
		}
		if _, err := os.Lstat(w.Dir); !os.IsNotExist(err) {
			t.Errorf("the workspace is still there (%v)", err)
		}
	})
	for _, pool := range []string{"directory", "image"} {
		for _, folder := range []string{"volumes", "snapshots", "groups", "staging", "trash", "retained", "quarantine"} {
			mkdir(t, filepath.Join(w.Data(), "pools", pool, folder))
		}
		write(t, filepath.Join(w.Data(), "pools", pool, "pool.json"))
		mkdir(t, filepath.Join(w.Data(), "known"))
		write(t, filepath.Join(w.Data(), "known", pool))
	}
	mkdir(t, filepath.Join(w.Data(), "node", "repairing"))
	return w
}

func mkdir(t *testing.T, path string) string {
	t.Helper()
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func write(t *testing.T, path string) string {
	t.Helper()
	if err := os.WriteFile(path, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func mount(t *testing.T, source, target, fstype string, flags uintptr) {
	t.Helper()
	if err := unix.Mount(source, target, fstype, flags, ""); err != nil {
		t.Fatalf("mount %s at %s: %v", source, target, err)
	}
}

// attach puts a loop device over a file and returns its name.
func attach(t *testing.T, file string) string {
	t.Helper()
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer control.Close()
	backing, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer backing.Close()
	// The tests of other packages take free devices too, and a device counts as free until it is attached.
	for end := time.Now().Add(2 * time.Minute); ; {
		number, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			t.Fatal(err)
		}
		device, err := os.OpenFile(fmt.Sprintf("/dev/loop%d", number), os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		err = unix.IoctlLoopConfigure(int(device.Fd()), &unix.LoopConfig{Fd: uint32(backing.Fd())})
		device.Close()
		if err == nil {
			return fmt.Sprintf("loop%d", number)
		}
		if time.Now().After(end) {
			t.Fatalf("no loop device could be had: %v", err)
		}
	}
}

func TestLeaksOfNothing(t *testing.T) {
	w := workspace(t)
	if leaks, err := Leaks(w.Data(), w.Mounts()); err != nil || len(leaks) > 0 {
		t.Errorf("an empty driver has leaks %q, error %v", leaks, err)
	}
	if leaks, err := Leaks(w.Dir+"/nowhere", w.Dir+"/nowhere-else"); err != nil || len(leaks) > 0 {
		t.Errorf("directories that are not there have leaks %q, error %v", leaks, err)
	}
}

// TestLeaksFindsWhatIsPlanted proves that the demo and the crash test can fail.
func TestLeaksFindsWhatIsPlanted(t *testing.T) {
	tests := []struct {
		name  string
		plant func(t *testing.T, w *Workspace) []string // returns the beginning of each leak's line
	}{
		{"mount", func(t *testing.T, w *Workspace) []string {
			at := mkdir(t, filepath.Join(w.Mounts(), "pods", "a", "mount"))
			mount(t, "tmpfs", at, "tmpfs", 0)
			return []string{"mount " + at, "directory " + filepath.Dir(at)}
		}},
		{"bind mount elsewhere", func(t *testing.T, w *Workspace) []string {
			at := mkdir(t, filepath.Join(w.Dir, "elsewhere"))
			mount(t, mkdir(t, filepath.Join(w.Data(), "pools/directory/volumes/v/data")), at, "", unix.MS_BIND)
			return []string{"mount " + at, "directory " + filepath.Join(w.Data(), "pools/directory/volumes/v")}
		}},
		{"loop device", func(t *testing.T, w *Workspace) []string {
			image := write(t, filepath.Join(w.Data(), "pools/image/trash/x"))
			name := attach(t, image)
			return []string{"loop device " + name + " over " + image, "file " + image}
		}},
		{"loop device over a deleted file", func(t *testing.T, w *Workspace) []string {
			image := write(t, filepath.Join(w.Data(), "pools/image/trash/x"))
			name := attach(t, image)
			if err := os.Remove(image); err != nil {
				t.Fatal(err)
			}
			return []string{"loop device " + name + " over " + image + " (deleted)"}
		}},
		{"mount of a loop device elsewhere", func(t *testing.T, w *Workspace) []string {
			image := write(t, filepath.Join(w.Data(), "image"))
			if err := os.Truncate(image, 16<<20); err != nil {
				t.Fatal(err)
			}
			mkfs(t, image)
			name := attach(t, image)
			at := mkdir(t, filepath.Join(w.Dir, "elsewhere"))
			mount(t, "/dev/"+name, at, "ext4", 0)
			return []string{"mount " + at, "loop device " + name, "file " + image}
		}},
		{"file", func(t *testing.T, w *Workspace) []string {
			return []string{"file " + write(t, filepath.Join(w.Data(), "pools/image/staging/draft.json"))}
		}},
		{"volume", func(t *testing.T, w *Workspace) []string {
			return []string{"directory " + mkdir(t, filepath.Join(w.Data(), "pools/directory/volumes/v"))}
		}},
		{"node record", func(t *testing.T, w *Workspace) []string {
			return []string{"file " + write(t, filepath.Join(w.Data(), "node/0123.json"))}
		}},
		{"staging directory", func(t *testing.T, w *Workspace) []string {
			return []string{"directory " + mkdir(t, filepath.Join(w.Mounts(), "staging/v"))}
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := workspace(t)
			want := test.plant(t, w)
			got, err := Leaks(w.Data(), w.Mounts())
			if err != nil {
				t.Fatal(err)
			}
			if !slices.EqualFunc(got, want, strings.HasPrefix) {
				t.Errorf("leaks:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

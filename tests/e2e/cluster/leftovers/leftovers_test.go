package leftovers

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/tests/stall"

	"github.com/stowage-csi/stowage/tests/e2e/cluster/layout"
	"github.com/stowage-csi/stowage/tests/mountns"
)

func TestMain(m *testing.M) {
	stall.Main()
	os.Exit(mountns.Isolate(m.Run))
}

func attach(t *testing.T, path string) string {
	t.Helper()
	if err := os.WriteFile(path, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	return attachOver(t, path)
}

// attachOver attaches a file, or a device.
func attachOver(t *testing.T, path string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "losetup", "--find", "--show", path).Output()
	if err != nil {
		t.Fatal(err)
	}
	device := strings.TrimSpace(string(out))
	t.Cleanup(func() {
		_ = withDevice(device, func(fd int) error { return unix.IoctlSetInt(fd, unix.LOOP_CLR_FD, 0) })
	})
	return device
}

// TestDetachLoops detaches the loop devices of files in a folder, by whatever path, with the devices on top of them,
// and no others.
func TestDetachLoops(t *testing.T) {
	stall.Apart(t) // It asks all loop devices of the machine.
	folder, other := t.TempDir(), t.TempDir()
	view := t.TempDir()
	if err := unix.Mount(folder, view, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(view, unix.MNT_DETACH) })
	own := attach(t, filepath.Join(view, "own"))
	foreign := attach(t, filepath.Join(other, "foreign"))
	above := attachOver(t, own)
	if loops, err := Loops(folder); err != nil || !slices.Equal(loops, []string{above, own}) {
		t.Errorf("the folder has the loop devices %v (%v), not %s and %s below it", loops, err, above, own)
	}
	if err := DetachLoops(folder); err != nil {
		t.Fatal(err)
	}
	// The last close frees a device, and the tests of other packages open each one for an instant.
	for end := time.Now().Add(2 * time.Minute); ; <-time.After(time.Millisecond) {
		loops, err := Loops(folder)
		if err == nil && len(loops) == 0 {
			break
		}
		if err != nil || time.Now().After(end) {
			t.Fatalf("the folder still has the loop devices %v (%v)", loops, err)
		}
	}
	if loops, err := Loops(other); err != nil || !slices.Equal(loops, []string{foreign}) {
		t.Errorf("the other folder has the loop devices %v (%v), not %s", loops, err, foreign)
	}
}

// TestLoopsWaitForNoStranger makes a loop device hold a file of a server that does not answer.
func TestLoopsWaitForNoStranger(t *testing.T) {
	server, folder := stall.Serve(t), t.TempDir()
	attach(t, filepath.Join(server.Dir, "foreign"))
	own := attach(t, filepath.Join(folder, "own"))
	server.Stop(t)
	t.Cleanup(func() { server.Continue(t) }) // or the device is not detached
	found := make(chan []string)
	go func() {
		loops, err := Loops(folder)
		if err != nil {
			t.Error(err)
		}
		found <- loops
	}()
	select {
	case loops := <-found:
		if !slices.Equal(loops, []string{own}) {
			t.Errorf("the folder has the loop devices %v, not %s", loops, own)
		}
	case <-time.After(2 * time.Minute):
		t.Error("it waits for the server")
	}
}

// TestCgroups creates groups with a process in one, and removes them.
func TestCgroups(t *testing.T) {
	name := "stowage-cluster-test-" + strconv.Itoa(os.Getpid())
	t.Cleanup(func() { _ = RemoveCgroups(t.Context(), name) })
	if err := MakeCgroups(name, []string{"node-1", "node-2"}); err != nil {
		t.Fatal(err)
	}
	groups, err := Cgroups(name)
	if err != nil || len(groups) < 3 || len(groups)%3 != 0 {
		t.Fatalf("there are the groups %v (%v), not three in each hierarchy", groups, err)
	}
	cmd := exec.CommandContext(t.Context(), "sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(freezerOrFirst(groups), "cgroup.procs"), []byte(strconv.Itoa(cmd.Process.Pid)),
		0o644); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	if err := RemoveCgroups(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	if exit, ok := errors.AsType[*exec.ExitError](<-ended); !ok || exit.Sys() == nil {
		t.Error("the process in the group was not killed")
	}
	if groups, err := Cgroups(name); err != nil || len(groups) != 0 {
		t.Errorf("there are still the groups %v (%v)", groups, err)
	}
}

// freezerOrFirst returns a group that accepts a process as it is: groups of cpuset must first be given processors.
func freezerOrFirst(groups []string) string {
	for _, group := range groups {
		if strings.Contains(group, "freezer") && strings.HasSuffix(group, "node-1") {
			return group
		}
	}
	return groups[0]
}

func TestRemoveFolder(t *testing.T) {
	fresh := func(t *testing.T) layout.Layout {
		l, err := layout.New(filepath.Join(t.TempDir(), "data"))
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	fill := func(t *testing.T, l layout.Layout, marked bool) {
		if err := os.MkdirAll(l.Path("nodes", "node-1"), 0o755); err != nil {
			t.Fatal(err)
		}
		if marked {
			if err := l.Describe(layout.Description{Nodes: 1}); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Run("none", func(t *testing.T) {
		if err := RemoveFolder(t.Context(), fresh(t)); err != nil {
			t.Error(err)
		}
	})
	t.Run("a cluster's", func(t *testing.T) {
		l := fresh(t)
		fill(t, l, true)
		if err := RemoveFolder(t.Context(), l); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(l.Data()); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the folder is still there (%v)", err)
		}
	})
	t.Run("another's", func(t *testing.T) {
		l := fresh(t)
		fill(t, l, false)
		if err := RemoveFolder(t.Context(), l); err == nil {
			t.Error("a folder that is not marked was removed")
		}
		if _, err := os.Stat(l.Path("nodes", "node-1")); err != nil {
			t.Error(err)
		}
	})
	t.Run("with a mount", func(t *testing.T) {
		l := fresh(t)
		fill(t, l, true)
		if err := unix.Mount("tmpfs", l.Path("nodes"), "tmpfs", 0, ""); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Unmount(l.Path("nodes"), unix.MNT_DETACH) })
		if err := RemoveFolder(t.Context(), l); err == nil {
			t.Error("a folder with something mounted in it was removed")
		}
		if !l.Exists() {
			t.Error("the marker is gone")
		}
	})
}

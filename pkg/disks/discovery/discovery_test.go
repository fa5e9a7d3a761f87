package discovery_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/disks/discovery"
	"github.com/stowage-csi/stowage/pkg/disks/method"
	"github.com/stowage-csi/stowage/pkg/disks/report"
	"github.com/stowage-csi/stowage/tests/mountns"
	"github.com/stowage-csi/stowage/tests/testfs"
)

func TestMain(m *testing.M) { os.Exit(mountns.IsolateInMemory(m.Run)) }

const mib = 1 << 20

func image(t *testing.T, size int64) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "disk.img")
	if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, size)); err != nil {
		t.Fatal(err)
	}
	return path
}

func disk(t *testing.T, size int64) string { t.Helper(); return testfs.Attach(t, image(t, size)) }

func unknown(string) discovery.History { return discovery.History{} }

// find returns what a configuration selects.
func find(t *testing.T, config string, remember discovery.Remember) []report.Volume {
	t.Helper()
	c, err := discovery.Parse([]byte(config))
	if err != nil {
		t.Fatal(err)
	}
	found, err := c.Find(t.Context(), remember)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// one returns the only device. Concurrent tests may have it open for a moment.
func one(t *testing.T, node, more string, remember discovery.Remember) report.Volume {
	t.Helper()
	for late := time.Now().Add(2 * time.Minute); ; {
		found := find(t, fmt.Sprintf("devices: [{paths: [%s]%s}]", node, more), remember)
		if len(found) != 1 {
			t.Fatalf("%d volumes are found, want 1: %+v", len(found), found)
		}
		if !testfs.Passing(found[0].Message) || time.Now().After(late) {
			return found[0]
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestStates puts a disk into each state in which it may be found.
func TestStates(t *testing.T) {
	for name, c := range map[string]struct {
		before func(t *testing.T, node string)
		more   string
		past   discovery.History
		state  string
		says   string
	}{
		"blank": {state: report.Available},
		"with a filesystem": {
			before: func(t *testing.T, node string) { testfs.Format(t, "ext4", node) }, state: report.NotBlank, says: "ext4",
		},
		"with a filesystem that may be offered": {
			before: func(t *testing.T, node string) { testfs.Format(t, "ext4", node) }, more: ", notBlank: true",
			state: report.Available,
		},
		"with data that nothing tells of": {
			before: func(t *testing.T, node string) { write(t, node, 20*mib) }, state: report.NotBlank, says: "unknown data",
		},
		"such data after a wipe of signatures": {
			before: func(t *testing.T, node string) { write(t, node, 20*mib) },
			past:   discovery.History{Wiped: method.Signatures}, state: report.Available,
		},
		"such data after a wipe of everything": {
			before: func(t *testing.T, node string) { write(t, node, 20*mib) }, past: discovery.History{Wiped: method.Zero},
			state: report.NotBlank,
		},
		"a filesystem after a wipe of signatures": {
			before: func(t *testing.T, node string) { testfs.Format(t, "ext4", node) },
			past:   discovery.History{Wiped: method.Signatures}, state: report.NotBlank,
		},
		"a filesystem after no wipe": {
			before: func(t *testing.T, node string) { testfs.Format(t, "ext4", node) },
			past:   discovery.History{Wiped: method.None}, state: report.Available,
		},
		"another filesystem than no wipe has left": {
			before: func(t *testing.T, node string) { testfs.Format(t, "ext4", node) },
			past:   discovery.History{Wiped: method.None, Left: "ext4 0f3a1b52-0c3d-4e5f-8a9b-000000000000"},
			state:  report.NotBlank, says: "ext4",
		},
		"nothing, where no wipe has left a filesystem": {
			before: func(*testing.T, string) {}, past: discovery.History{Wiped: method.None, Left: "ext4"},
			state: report.Available,
		},
		"offered, whatever is on it": {
			before: func(t *testing.T, node string) { testfs.Format(t, "ext4", node) }, past: discovery.History{Taken: true},
			state: report.Offered,
		},
		"offered once": {past: discovery.History{Dirty: true}, state: report.Dirty, says: "stowage.dev/reclaim"},
		"mounted": {
			before: func(t *testing.T, node string) { testfs.Format(t, "ext4", node); testfs.Mount(t, node) },
			state:  report.InUse, says: "mount",
		},
		"held by a loop device": {
			before: func(t *testing.T, node string) { testfs.Attach(t, node) }, state: report.InUse, says: "loop device",
		},
		"held by a loop device, by a node that is gone": {
			before: func(t *testing.T, node string) {
				var stat unix.Stat_t
				must(t, unix.Stat(node, &stat))
				other := filepath.Join(t.TempDir(), "node")
				must(t, unix.Mknod(other, unix.S_IFBLK|0o600, int(stat.Rdev)))
				testfs.Attach(t, other)
				must(t, os.Remove(other))
			}, state: report.InUse, says: "loop device",
		},
		"open in another process": {before: hold, state: report.InUse, says: "process"},
	} {
		t.Run(name, func(t *testing.T) {
			node := disk(t, 64*mib)
			if c.before != nil {
				c.before(t, node)
			}
			v := one(t, node, c.more, func(string) discovery.History { return c.past })
			if v.State != c.state || !strings.Contains(v.Message, c.says) {
				t.Errorf("%+v, want %s and %q", v, c.state, c.says)
			}
			if v.SizeBytes != 64*mib || v.Mode != report.Block || v.Device != node || v.Name != discovery.NameOf(v.Identity) {
				t.Errorf("it is %+v", v)
			}
		})
	}
}

func write(t *testing.T, node string, offset int64) {
	t.Helper()
	f, err := os.OpenFile(node, os.O_WRONLY, 0)
	must(t, err)
	_, err = f.WriteAt([]byte("data of somebody"), offset)
	must(t, errors.Join(err, f.Sync(), f.Close()))
}

// hold has another process keep the device open, like a pod that uses it as a raw block volume.
func hold(t *testing.T, node string) {
	t.Helper()
	start(t, "/", "sh", "-c", "exec 3<$0; echo open; exec cat", node)
}

// start runs a program in a directory until the test ends. The program says "open" and ends with its standard input.
func start(t *testing.T, dir string, argv ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Dir = dir
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	if _, err := out.Read(make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
}

// TestUnseenUsers checks that a device does not count as unused if not all its users can be seen.
func TestUnseenUsers(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // This ends the search through the processes.
	f, err := discovery.OpenAlone(ctx, disk(t, mib), os.O_RDONLY)
	if err == nil {
		must(t, f.Close())
		t.Fatal("a device is opened though who uses it was not seen")
	}
	if !strings.Contains(err.Error(), "who uses it cannot be seen") {
		t.Errorf("it says %q", err)
	}
}

// TestLoopOverADisk checks that a loop device that holds a disk is not a disk itself, and that the disk is in use. The
// kubelet keeps such a loop device on a raw block volume while a pod uses it.
func TestLoopOverADisk(t *testing.T) {
	under := disk(t, 8<<20)
	over := testfs.Attach(t, under)
	if v := one(t, over, "", unknown); v.State != report.Unusable || !strings.Contains(v.Message, "holds a block device") {
		t.Errorf("a loop device that holds a disk is %s: %q", v.State, v.Message)
	}
	if v := one(t, under, "", unknown); v.State != report.InUse {
		t.Errorf("the disk that it holds is %s: %q", v.State, v.Message)
	}
}

// TestFilters checks that each filter selects and refuses.
func TestFilters(t *testing.T) {
	node := disk(t, 64*mib)
	link := filepath.Join("/dev", "stowage-test-"+filepath.Base(t.TempDir())+filepath.Base(node))
	must(t, os.Symlink(node, link))
	defer func() { _ = os.Remove(link) }() // Otherwise it goes with the machine.
	for more, want := range map[string]int{
		"":                           1,
		", minSize: 64Mi":            1,
		", minSize: 65Mi":            0,
		", maxSize: 64Mi":            1,
		", maxSize: 63Mi":            0,
		", transports: [loop, nvme]": 1,
		", transports: [nvme]":       0,
		", models: ['*']":            1,
		", models: ['INTEL*']":       0,
		", partitions: true":         1,
	} {
		for _, at := range []string{node, link, link + "*"} {
			if found := find(t, fmt.Sprintf("devices: [{paths: ['%s']%s}]", at, more), unknown); len(found) != want {
				t.Errorf("%s%s finds %+v, want %d", at, more, found, want)
			}
		}
	}
	// What the kernel reports about a loop device depends on the disk below it.
	rotates, err := os.ReadFile(filepath.Join("/sys/block", filepath.Base(node), "queue/rotational"))
	must(t, err)
	for _, asked := range []string{"0", "1"} {
		found := find(t, fmt.Sprintf("devices: [{paths: [%s], rotational: %t}]", node, asked == "1"), unknown)
		if is := strings.TrimSpace(string(rotates)); (len(found) == 1) != (is == asked) {
			t.Errorf("a disk of which the kernel says %s is found %d times where %s is asked for", is, len(found), asked)
		}
	}
}

// TestIdentityLasts checks that a disk keeps its name on another path, that another disk has another name, and that two
// disks that report the same are unusable.
func TestIdentityLasts(t *testing.T) {
	file := image(t, 64*mib)
	var name string
	t.Run("first", func(t *testing.T) { name = one(t, testfs.Attach(t, file), "", unknown).Name })
	if other := one(t, disk(t, 64*mib), "", unknown); other.Name == name || name == "" {
		t.Errorf("another disk is %q, the first was %q", other.Name, name)
	}
	again, twin := testfs.Attach(t, file), testfs.Attach(t, file)
	if v := one(t, again, "", unknown); v.Name != name {
		t.Errorf("it is %q, and was %q", v.Name, name)
	}
	found := find(t, fmt.Sprintf("devices: [{paths: [%s, %s]}]", again, twin), unknown)
	if len(found) != 2 || found[0].State != report.Unusable || found[1].State != report.Unusable ||
		found[0].Name == found[1].Name {
		t.Errorf("two with one identity are %+v", found)
	}
}

// TestMountPoints finds a filesystem, one with files, and none where nothing is mounted.
func TestMountPoints(t *testing.T) {
	at := testfs.New(t, "ext4", 64)
	config := fmt.Sprintf("mountPoints: [{paths: ['%s*', '%s']}]", at, t.TempDir())
	v := find(t, config, unknown)
	if len(v) != 1 || v[0].State != report.Available || v[0].Path != at || v[0].Mode != report.Filesystem ||
		v[0].SizeBytes < 32*mib {
		t.Fatalf("found: %+v", v)
	}
	must(t, os.WriteFile(filepath.Join(at, "file"), nil, 0o600))
	if v := find(t, config, unknown); v[0].State != report.NotBlank || !strings.Contains(v[0].Message, "file") {
		t.Errorf("with a file: %+v", v)
	}
	dir, err := discovery.OpenMount(t.Context(), at, v[0].Identity)
	must(t, errors.Join(err, dir.Close()))
	if _, err := discovery.OpenMount(t.Context(), at, "ext4=another"); err == nil ||
		!strings.Contains(err.Error(), "another filesystem") {
		t.Errorf("another filesystem is opened: %v", err)
	}
	must(t, os.Rename(filepath.Join(at, "file"), filepath.Join(at, "lost+found", "#12")))
	if v := find(t, config, unknown); v[0].State != report.NotBlank || !strings.Contains(v[0].Message, "lost+found/#12") {
		t.Errorf("with a file that fsck has found: %+v", v)
	}
	must(t, os.Remove(filepath.Join(at, "lost+found", "#12")))
	for name, c := range map[string]struct {
		dir, state string
		argv       []string
	}{
		"works in it":       {at, report.InUse, []string{"sh", "-c", "echo open; exec cat"}},
		"has its root open": {"/", report.InUse, []string{"sh", "-c", "exec 3<$0; echo open; exec cat", at}},
		"has a copy of the mount": {"/", report.Available,
			[]string{"unshare", "--mount", "--propagation", "private", "sh", "-c", "echo open; exec cat"}},
	} {
		t.Run(name, func(t *testing.T) {
			start(t, c.dir, c.argv...)
			if v := find(t, config, unknown); v[0].State != c.state {
				t.Errorf("while another process %s: %+v, want %s", name, v, c.state)
			}
			dir, err := discovery.OpenMount(t.Context(), at, v[0].Identity)
			if err == nil {
				must(t, dir.Close())
			}
			if (err == nil) != (c.state == report.Available) {
				t.Errorf("while another process %s it is opened with %v", name, err)
			}
		})
	}
	testfs.Bind(t, at, t.TempDir())
	if v := find(t, config, unknown); v[0].State != report.InUse {
		t.Errorf("mounted twice: %+v", v)
	}
	if _, err := discovery.OpenMount(t.Context(), at, v[0].Identity); err == nil {
		t.Error("a filesystem that a pod has mounted is opened")
	}
}

// TestBoundMountDirectory checks that a filesystem is found and opened even if its parent directory is bind-mounted at
// a second path. It is in use once it is mounted in another directory.
func TestBoundMountDirectory(t *testing.T) {
	image := image(t, 64*mib)
	testfs.Format(t, "ext4", image)
	directory, second := t.TempDir(), t.TempDir()
	at := filepath.Join(directory, "a")
	must(t, os.Mkdir(at, 0o700))
	testfs.Run(t, "mount", testfs.Attach(t, image), at)
	t.Cleanup(func() { must(t, unix.Unmount(at, 0)) })
	testfs.Run(t, "mount", "--rbind", "--make-rprivate", directory, second)
	t.Cleanup(func() { must(t, errors.Join(unix.Unmount(filepath.Join(second, "a"), 0), unix.Unmount(second, 0))) })
	config := fmt.Sprintf("mountPoints: [{paths: ['%s']}]", at)
	v := find(t, config, unknown)[0]
	if v.State != report.Available {
		t.Errorf("in a directory that shows at %s too it is %+v", second, v)
	}
	dir, err := discovery.OpenMount(t.Context(), at, v.Identity)
	if err != nil {
		t.Fatal(err)
	}
	must(t, dir.Close())
	other := t.TempDir()
	testfs.Bind(t, at, other)
	if now := find(t, config, unknown)[0]; now.State != report.InUse || !strings.Contains(now.Message, other) {
		t.Errorf("mounted at %s as well it is %+v", other, now)
	}
}

// TestReadOnlyMount checks that a filesystem that cannot be written to is neither offered nor counts as emptied,
// whether it or its mount is read-only.
func TestReadOnlyMount(t *testing.T) {
	for _, options := range []string{"remount,ro", "remount,bind,ro"} {
		at := testfs.New(t, "ext4", 64)
		config := fmt.Sprintf("mountPoints: [{paths: ['%s']}]", at)
		v := find(t, config, unknown)[0]
		testfs.Run(t, "mount", "-o", options, at)
		if now := find(t, config, unknown)[0]; now.State != report.Unusable || !strings.Contains(now.Message, "read-only") {
			t.Errorf("after %s it is %+v", options, now)
		}
		if dir, err := discovery.OpenMount(t.Context(), at, v.Identity); err == nil {
			t.Errorf("after %s it is opened to be emptied", options)
			must(t, dir.Close())
		}
		offered := func(string) discovery.History { return discovery.History{Taken: true} }
		if now := find(t, config, offered)[0]; now.State != report.Offered {
			t.Errorf("offered, and after %s, it is %+v", options, now)
		}
	}
}

// TestMountPointThatDroppedOff checks that an empty directory does not count as the volume.
func TestMountPointThatDroppedOff(t *testing.T) {
	dir := t.TempDir()
	if found := find(t, fmt.Sprintf("mountPoints: [{paths: [%s]}]", dir), unknown); len(found) != 0 {
		t.Errorf("found: %+v", found)
	}
	if _, err := discovery.OpenMount(t.Context(), dir, "ext4=x"); err == nil ||
		!strings.Contains(err.Error(), "no filesystem is mounted") {
		t.Errorf("an empty directory is opened: %v", err)
	}
}

func TestParseRefuses(t *testing.T) {
	for config, says := range map[string]string{
		"{}":                                           "nothing could be found",
		"devices: [{path: /dev/sda}]":                  `unknown field "path"`,
		"devices: [{}]":                                "no paths",
		"devices: [{paths: [/etc/x]}]":                 "below /dev/",
		"devices: [{paths: [/dev/../x]}]":              "not usable",
		"devices: [{paths: ['/dev/[']}]":               "no pattern",
		"devices: [{paths: [/dev/a], minSize: 1.5Gi}]": `minSize is "1.5Gi"`,
		"devices: [{paths: [/dev/a], minSize: 2Gi, maxSize: 1Gi}]":     "no size is both",
		"devices: [{paths: [/dev/a], transports: [pigeon]}]":           `transport is "pigeon"`,
		"devices: [{paths: [/dev/a], models: ['[']}]":                  "no pattern",
		"mountPoints: [{paths: [disks/*]}]":                            "not usable",
		"mountPoints: [{paths: [/]}]":                                  "not usable",
		"devices: [{paths: [/dev/a]}]\nmountPoints: [{paths: []}]":     "mountPoints[0]",
		"mountPoints: [{paths: [/mnt/*], maxSize: '0'}]":               `maxSize is "0"`,
		"devices: [{paths: [/dev/a], rotational: perhaps}]":            "rotational",
		"devices: [{paths: [/dev/a]}]\npools: []":                      "pools",
		"devices: [{paths: [/dev/a]}]\ndevices: [{paths: [/dev/b]}]\n": "devices",
	} {
		if _, err := discovery.Parse([]byte(config)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q in it", config, err, says)
		}
	}
}

// TestWatch checks that a new disk and a new mount are reported.
func TestWatch(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	changes, ended := make(chan struct{}, 1), make(chan error)
	go func() {
		ended <- discovery.Watch(ctx, func() {
			select {
			case changes <- struct{}{}:
			default:
			}
		})
	}()
	dir := t.TempDir()
	told := func(what string, change func()) {
		t.Helper()
		for late := time.After(2 * time.Minute); ; {
			change()
			select {
			case <-changes:
				return
			// Stimulus: the change is made again, for the watch may not have been listening yet.
			case <-time.After(200 * time.Millisecond):
			case <-late:
				t.Fatalf("%s is not told", what)
			}
		}
	}
	told("a mount", func() { must(t, unix.Mount("x", dir, "tmpfs", 0, "")); must(t, unix.Unmount(dir, 0)) })
	file := image(t, mib)
	told("a disk", func() { t.Run("disk", func(t *testing.T) { testfs.Attach(t, file) }) })
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("watching ended with %v", err)
	}
}

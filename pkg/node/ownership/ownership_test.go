package ownership

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/tests/testfs"
)

const (
	group     = 4711
	immutable = 0x10 // FS_IMMUTABLE_FL, linux/fs.h
)

func needRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("NOT RUN: giving files to a group needs root")
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func apply(t *testing.T, request Request) Result {
	t.Helper()
	result, err := Apply(t.Context(), request)
	must(t, err)
	return result
}

func look(t *testing.T, path string) unix.Stat_t {
	t.Helper()
	var stat unix.Stat_t
	must(t, unix.Lstat(path, &stat))
	return stat
}

// The table follows the kubelet's documented rules: Configure a Security Context for a Pod, and kubernetes
// pkg/volume/volume_linux.go.
func TestRules(t *testing.T) {
	needRoot(t)
	for _, test := range []struct {
		name              string
		make              func(path string) error
		before            uint32
		readOnly          bool
		after             uint32
		ownerUID, groupID uint32
	}{
		{"private file", file, 0o600, false, 0o660, 0, 0},
		{"file without rights", file, 0, false, 0o660, 0, 0},
		{"program keeps its bits", file, 0o755, false, 0o775, 0, 0},
		{"setuid survives the new group", file, 0o4711, false, 0o4771, 12, 0},
		{"setgid survives the new group", file, 0o2755, false, 0o2775, 12, 34},
		{"sticky file", file, 0o1644, false, 0o1664, 0, 0},
		{"file in the group already", file, 0o600, false, 0o660, 0, group},
		{"file all right already", file, 0o664, false, 0o664, 12, group},
		{"read-only file", file, 0o600, true, 0o640, 0, 0},
		{"read-only file without rights", file, 0, true, 0o440, 0, 0},
		{"directory", folder, 0o700, false, 0o2770, 0, 0},
		{"directory without rights", folder, 0, false, 0o2770, 12, 34},
		{"sticky directory", folder, 0o1777, false, 0o3777, 0, 0},
		{"read-only directory", folder, 0o700, true, 0o2750, 0, 0},
		{"FIFO", fifo, 0o600, false, 0o660, 0, 0},
		{"device node", device, 0o600, false, 0o660, 0, 0},
		{"symlink", symlink, 0o777, false, 0o777, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			root := t.TempDir()
			path := filepath.Join(root, "entry")
			must(t, test.make(path))
			for _, exclusive := range []bool{false, true} {
				must(t, unix.Lchown(path, int(test.ownerUID), int(test.groupID)))
				if look(t, path).Mode&unix.S_IFMT != unix.S_IFLNK {
					must(t, unix.Chmod(path, test.before))
				}
				apply(t, Request{Path: root, GID: group, ReadOnly: test.readOnly, Exclusive: exclusive})
				got := look(t, path)
				if got.Gid != group || got.Uid != test.ownerUID || got.Mode&everything != test.after {
					t.Errorf("exclusive %v: mode %04o, owner %d:%d; want %04o, %d:%d", exclusive,
						got.Mode&everything, got.Uid, got.Gid, test.after, test.ownerUID, group)
				}
			}
		})
	}
}

func file(path string) error    { return os.WriteFile(path, []byte("x"), 0o600) }
func folder(path string) error  { return os.Mkdir(path, 0o700) }
func fifo(path string) error    { return unix.Mkfifo(path, 0o600) }
func device(path string) error  { return unix.Mknod(path, unix.S_IFBLK|0o600, int(unix.Mkdev(7, 250))) }
func symlink(path string) error { return os.Symlink("/etc/hostname", path) }

// kubelet is the kubelet's method, as the baseline for results and speed: one path after the other.
func kubelet(root string, gid int) error {
	return filepath.Walk(root, func(path string, info fs.FileInfo, err error) error {
		if err != nil {
			return err
		}
		if err := os.Lchown(path, -1, gid); err != nil || info.Mode()&fs.ModeSymlink != 0 {
			return err
		}
		mode := info.Mode() | 0o660
		if info.IsDir() {
			mode |= 0o110 | fs.ModeSetgid
		}
		return os.Chmod(path, mode)
	})
}

// populate creates a tree of directories and files with all modes.
func populate(t testing.TB, root string, directories, files int) {
	t.Helper()
	for d := range directories {
		dir := filepath.Join(root, fmt.Sprint("d", d%7), fmt.Sprint("d", d))
		must(t, os.MkdirAll(dir, 0o700))
		for f := range files {
			path := filepath.Join(dir, fmt.Sprint("f", f))
			must(t, os.WriteFile(path, nil, 0o600))
			must(t, os.Chmod(path,
				fs.FileMode((d*files+f)%0o1000)|fs.FileMode(f%8)<<20&(fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky)))
		}
		must(t, os.Symlink("f0", filepath.Join(dir, "link")))
		must(t, os.Symlink("/nowhere", filepath.Join(dir, "dangling")))
		if files > 0 {
			must(t, os.Link(filepath.Join(dir, "f0"), filepath.Join(dir, "hard")))
		}
	}
}

func listing(t *testing.T, root string) string {
	t.Helper()
	var b strings.Builder
	must(t, filepath.Walk(root, func(path string, _ fs.FileInfo, err error) error {
		stat := look(t, path)
		rest, _ := strings.CutPrefix(path, root)
		fmt.Fprintf(&b, "%s %o %d:%d\n", rest, stat.Mode, stat.Uid, stat.Gid)
		return err
	}))
	return b.String()
}

func TestSameAsTheKubelet(t *testing.T) {
	needRoot(t)
	theirs := t.TempDir()
	populate(t, theirs, 30, 25)
	must(t, kubelet(theirs, group))
	want := listing(t, theirs)
	for _, exclusive := range []bool{false, true} {
		ours := t.TempDir()
		populate(t, ours, 30, 25)
		request := Request{Path: ours, GID: group, Exclusive: exclusive}
		result := apply(t, request)
		if got := listing(t, ours); got != want {
			t.Errorf("exclusive %v: the trees differ:\n%s", exclusive, firstDifference(got, want))
		}
		if lines := int64(strings.Count(want, "\n")); result.Entries != lines || result.Denied != 0 {
			t.Errorf("exclusive %v: %+v, want %d entries", exclusive, result, lines)
		}
		if again := apply(t, request); again.Changed != 0 || again.Entries != result.Entries {
			t.Errorf("exclusive %v: a second run changed something: %+v", exclusive, again)
		}
	}
}

func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return fmt.Sprintf("got  %s\nwant %s", g[i], w[i])
		}
	}
	return fmt.Sprintf("got %d lines, want %d", len(g), len(w))
}

func TestWorkersAndPieces(t *testing.T) {
	needRoot(t)
	root := t.TempDir()
	for i := range 3*batch + 7 {
		must(t, file(filepath.Join(root, fmt.Sprint(i))))
	}
	for workers := 1; workers <= 5; workers += 2 {
		result := apply(t, Request{Path: root, GID: uint32(group + workers), Workers: workers})
		if want := int64(3*batch + 8); result.Entries != want || result.Changed != want {
			t.Errorf("%d workers: %+v, want %d entries, all changed", workers, result, want)
		}
	}
}

func TestSymlinksAreNotFollowed(t *testing.T) {
	needRoot(t)
	root, outside := t.TempDir(), t.TempDir()
	secret := filepath.Join(outside, "secret")
	must(t, file(secret))
	must(t, os.Symlink(secret, filepath.Join(root, "file")))
	must(t, os.Symlink(outside, filepath.Join(root, "directory")))
	apply(t, Request{Path: root, GID: group})
	apply(t, Request{Path: root, GID: group + 1, Exclusive: true})
	for _, path := range []string{secret, outside} {
		if stat := look(t, path); stat.Gid != 0 {
			t.Errorf("%s was given to group %d through a symlink", path, stat.Gid)
		}
	}
	link := filepath.Join(outside, "root")
	must(t, os.Symlink(root, link))
	for _, path := range []string{link, secret} {
		if _, err := Apply(t.Context(), Request{Path: path, GID: group}); !backends.Is(err, backends.Invalid) {
			t.Errorf("Apply(%s) gave %v, want Invalid", path, err)
		}
	}
}

func TestMountsInsideAreLeftAlone(t *testing.T) {
	needRoot(t)
	root, outside := t.TempDir(), t.TempDir()
	must(t, file(filepath.Join(outside, "file")))
	for name, source := range map[string]string{"directory": outside, "file": filepath.Join(outside, "file")} {
		path := filepath.Join(root, name)
		if name == "file" {
			must(t, file(path))
		} else {
			must(t, folder(path))
		}
		must(t, unix.Mount(source, path, "", unix.MS_BIND, ""))
		t.Cleanup(func() { _ = unix.Unmount(path, unix.MNT_DETACH) })
	}
	must(t, file(filepath.Join(root, "own")))
	apply(t, Request{Path: root, GID: group + 1, Exclusive: true}) // promises that nobody mounts there; this breaks it
	apply(t, Request{Path: root, GID: group})
	for _, path := range []string{outside, filepath.Join(outside, "file")} {
		if look(t, path).Gid != 0 {
			t.Errorf("%s was given to the group through a mount", path)
		}
	}
	if look(t, filepath.Join(root, "own")).Gid != group {
		t.Error("the volume's own file was not given to the group")
	}
}

func TestPolicies(t *testing.T) {
	needRoot(t)
	root := t.TempDir()
	below := filepath.Join(root, "below")
	must(t, file(below))
	dir, err := os.Open(root)
	must(t, err)
	t.Cleanup(func() { _ = dir.Close() })
	mismatch := Request{Path: root, GID: group, Policy: OnRootMismatch}
	// Each step changes something, then says whether a run has to walk.
	for _, step := range []struct {
		name   string
		change func() error
		walks  bool
	}{
		{"first run", func() error { return nil }, true},
		{"second run", func() error { return nil }, false},
		{"only a file differs", func() error { return os.Chown(below, 0, 0) }, false},
		{"the root's group differs", func() error { return os.Chown(root, 0, 0) }, true},
		{"the root lacks setgid", func() error { return unix.Chmod(root, 0o770) }, true},
		{"the root lacks group write", func() error { return unix.Chmod(root, 0o2750) }, true},
		{"the root has more than needed", func() error { return unix.Chmod(root, 0o2777) }, false},
		{"a walk was cut short", func() error { return writeMark(dir, mark{begun, group}) }, true},
		{"another group was begun", func() error { return writeMark(dir, mark{begun, 1}) }, true},
		{"another group was completed", func() error { return writeMark(dir, mark{complete, 1}) }, true},
		{"the mark is garbage", func() error { return unix.Setxattr(root, markName, []byte("garbage"), 0) }, true},
		{"the mark is huge", func() error { return unix.Setxattr(root, markName, make([]byte, 1000), 0) }, true},
		{"somebody else did it", func() error { return unix.Removexattr(root, markName) }, false},
	} {
		must(t, step.change())
		if result := apply(t, mismatch); result.Skipped == step.walks {
			t.Fatalf("%s: %+v, want a walk: %v", step.name, result, step.walks)
		}
	}
	for _, policy := range []Policy{Always, ""} {
		if result := apply(t, Request{Path: root, GID: group, Policy: policy}); result.Skipped || result.Entries != 2 {
			t.Errorf("policy %q: %+v, want a walk", policy, result)
		}
	}
	if _, err := Apply(t.Context(),
		Request{Path: root, GID: group, Policy: "Sometimes"}); !backends.Is(err, backends.Invalid) {
		t.Errorf("an unknown policy gave %v, want Invalid", err)
	}
}

// An interrupted walk has marked the root, and the next one completes it.
func TestCutShort(t *testing.T) {
	needRoot(t)
	root := t.TempDir()
	populate(t, root, 5, 20)
	apply(t, Request{Path: root, GID: group})
	file := filepath.Join(root, "d0", "d0", "f3")
	must(t, os.Chown(file, 0, 0))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Apply(ctx, Request{Path: root, GID: group}); !backends.Is(err, backends.Unavailable) ||
		!errors.Is(err, context.Canceled) {
		t.Fatalf("a cancelled run gave %v, want Unavailable", err)
	}
	if result := apply(t, Request{Path: root, GID: group, Policy: OnRootMismatch}); result.Skipped || result.Changed != 1 {
		t.Errorf("the run after it: %+v, want one change", result)
	}
	if look(t, file).Gid != group {
		t.Error("the file was not given to the group")
	}
}

// On a filesystem without such attributes only the root tells, as with the kubelet.
func TestWithoutAttributes(t *testing.T) {
	needRoot(t)
	root := t.TempDir()
	must(t, unix.Mount("ownership", root, "ramfs", 0, ""))
	t.Cleanup(func() { _ = unix.Unmount(root, unix.MNT_DETACH) })
	if err := unix.Setxattr(root, markName, []byte("x"), 0); !errors.Is(err, unix.EOPNOTSUPP) {
		t.Fatalf("this test needs a filesystem without attributes: ramfs gave %v", err)
	}
	must(t, file(filepath.Join(root, "file")))
	for i, walks := range []bool{true, false} {
		if result := apply(t, Request{Path: root, GID: group, Policy: OnRootMismatch}); result.Skipped == walks {
			t.Errorf("run %d: %+v, want a walk: %v", i, result, walks)
		}
	}
}

func TestReadOnlyMountIsLeftAlone(t *testing.T) {
	needRoot(t)
	root := t.TempDir()
	must(t, unix.Mount("ownership", root, "tmpfs", unix.MS_RDONLY, ""))
	t.Cleanup(func() { _ = unix.Unmount(root, unix.MNT_DETACH) })
	if result := apply(t, Request{Path: root, GID: group}); !result.Skipped {
		t.Errorf("%+v, want no walk", result)
	}
}

func TestImmutableIsPassedOver(t *testing.T) {
	needRoot(t)
	root := t.TempDir()
	fixed, other := filepath.Join(root, "fixed"), filepath.Join(root, "other")
	must(t, file(fixed))
	must(t, file(other))
	handle, err := os.Open(fixed)
	must(t, err)
	t.Cleanup(func() { _ = handle.Close() })
	must(t, unix.IoctlSetPointerInt(int(handle.Fd()), unix.FS_IOC_SETFLAGS, immutable))
	t.Cleanup(func() { must(t, unix.IoctlSetPointerInt(int(handle.Fd()), unix.FS_IOC_SETFLAGS, 0)) })
	request := Request{Path: root, GID: group, Policy: OnRootMismatch}
	for i := range 2 { // a walk that skipped an entry is not complete
		request.Exclusive = i == 1
		if result := apply(t, request); result.Denied != 1 || result.Skipped {
			t.Errorf("%+v, want a walk with one entry passed over", result)
		}
	}
	if look(t, other).Gid != group || look(t, root).Gid != group {
		t.Error("what can be changed was not")
	}
}

// A pod may create read-only snapshots in its volume on a btrfs. A filesystem that is all read-only is a failure.
func TestReadOnlySnapshotIsPassedOver(t *testing.T) {
	root := testfs.New(t, "btrfs", 256)
	sub := filepath.Join(root, "sub")
	testfs.Run(t, "btrfs", "subvolume", "create", sub)
	must(t, file(filepath.Join(sub, "file")))
	testfs.Run(t, "btrfs", "subvolume", "snapshot", "-r", sub, filepath.Join(root, "snapshot"))
	request := Request{Path: root, GID: group, Policy: OnRootMismatch}
	for i := range 2 { // a walk that skipped an entry is not complete
		request.Exclusive = i == 1
		if result := apply(t, request); result.Denied != 2 || result.Skipped {
			t.Errorf("%+v, want a walk with two entries passed over", result)
		}
	}
	if look(t, filepath.Join(sub, "file")).Gid != group || look(t, root).Gid != group {
		t.Error("what can be changed was not")
	}
	w := &walker{want: wanted{gid: group + 1}}
	dir, err := os.Open(root)
	must(t, err)
	defer dir.Close()
	must(t, writeMark(dir, mark{begun, group + 1}))
	must(t, unix.Mount("", root, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	if err := w.finish(dir, w.walk(t.Context(), dir, 1)); !errors.Is(err, unix.EROFS) {
		t.Errorf("the filesystem became read-only during the walk: got %v, want %v", err, unix.EROFS)
	}
}

// Only a btrfs has read-only snapshots. Where a mark is impossible, as on NFS, nothing else shows that a filesystem was
// read-only for a part of a walk.
func TestReadOnlyFilesystemIsAFailure(t *testing.T) {
	root := testfs.New(t, "ext4", 64)
	dir, err := os.Open(root)
	must(t, err)
	defer dir.Close()
	must(t, unix.Mount("", root, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	w := &walker{want: wanted{gid: group}, isBtrfs: isBtrfs(dir)}
	if err := w.walk(t.Context(), dir, 1); !errors.Is(err, unix.EROFS) {
		t.Errorf("got %v, want %v", err, unix.EROFS)
	}
}

// A btrfs puts a renamed entry at the end of its directory, where it is read again.
func TestRenamesProlongNoWalk(t *testing.T) {
	root := testfs.New(t, "btrfs", 256)
	const files, times = 20, 100 // The files are more than a part has room for.
	named := func(i, time int) string { return filepath.Join(root, fmt.Sprintf("%d-%0200d", i, time)) }
	for i := range files {
		must(t, file(named(i, 0)))
	}
	d := &descent{walker: &walker{want: wanted{gid: group}, isBtrfs: true}}
	for time := range times {
		dir, err := os.Open(root) // as when the walk comes back from below
		must(t, err)
		d.here = hold(dir, true)
		if time == 0 {
			must(t, d.enter())
		}
		if d.levels[0].read {
			d.here.release()
			return
		}
		must(t, d.readPart(t.Context(), &d.levels[0]))
		d.here.release()
		for i := range files {
			must(t, os.Rename(named(i, time), named(i, time+1)))
		}
	}
	t.Errorf("the walk of %d files, which are renamed after each part, goes on after %d parts", files, times)
}

// Entries appear, disappear and turn into symlinks during the walk.
func TestChangesMeanwhile(t *testing.T) {
	needRoot(t)
	root, outside := t.TempDir(), t.TempDir()
	must(t, file(filepath.Join(outside, "secret")))
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				churn(root, outside, i%50)
			}
		}
	}()
	for i := range 80 {
		// Even if the promise of exclusiveness is broken, nothing outside is reached.
		if _, err := Apply(t.Context(), Request{Path: root, GID: uint32(group + i), Exclusive: i%2 == 1}); err != nil {
			t.Errorf("run %d: %v", i, err)
		}
	}
	close(stop)
	<-stopped
	for _, path := range []string{outside, filepath.Join(outside, "secret")} {
		if look(t, path).Gid != 0 {
			t.Errorf("%s outside of the volume was changed", path)
		}
	}
}

// churn swaps one entry from file to directory to symlinks. Its errors only mean less churn.
func churn(root, outside string, i int) {
	path := filepath.Join(root, fmt.Sprint(i))
	_ = file(path)
	_ = os.Remove(path)
	_ = os.Mkdir(path, 0o700)
	_ = file(filepath.Join(path, "inner"))
	_ = os.RemoveAll(path)
	_ = os.Symlink(outside, path)
	_ = os.Remove(path)
	_ = os.Symlink(filepath.Join(outside, "secret"), path)
	_ = os.Remove(path)
}

func TestParseGID(t *testing.T) {
	for text, want := range map[string]uint32{"0": 0, "4711": 4711, "4294967294": 4294967294} {
		if gid, err := ParseGID(text); gid != want || err != nil {
			t.Errorf("ParseGID(%q) = %d, %v", text, gid, err)
		}
	}
	for _, text := range []string{"", "-1", "4294967295", "1e3", " 1", "wheel", "0x10", "99999999999999999999"} {
		if gid, err := ParseGID(text); !backends.Is(err, backends.Invalid) {
			t.Errorf("ParseGID(%q) = %d, %v; want Invalid", text, gid, err)
		}
	}
}

func TestDeepTree(t *testing.T) {
	needRoot(t)
	const levels = 5000
	root := deep(t, levels)
	must(t, file(filepath.Join(root, "d", "d", "file")))
	descriptors(t, mostHeld+100)
	if result := apply(t, Request{Path: root, GID: group}); result.Changed != levels+2 {
		t.Errorf("%+v, want %d changed", result, levels+2)
	}
	if result := apply(t, Request{Path: root, GID: group, Exclusive: true}); result.Entries != levels+2 ||
		result.Changed != 0 {
		t.Errorf("the second time %+v, want %d entries", result, levels+2)
	}
	top, err := os.Open(deep(t, 2))
	must(t, err)
	if err := (&walker{want: wanted{gid: group}}).walkDeep(t.Context(), hold(top, true),
		maxDepth); !backends.Is(err, backends.Invalid) {
		t.Errorf("a tree that is too deep gave %v, want Invalid", err)
	}
}

// descriptors bounds how many further files the process may open, for the rest of the test.
func descriptors(t *testing.T, more int) {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	var before unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &before))
	must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(len(open) + more), Max: before.Max}))
	t.Cleanup(func() { must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &before)) })
}

// TestDeepBushes checks that everything below the directories that are held open is reached, on every branch, and that
// symlinks and mounts are not followed.
func TestDeepBushes(t *testing.T) {
	needRoot(t)
	root, outside := t.TempDir(), t.TempDir()
	must(t, file(filepath.Join(outside, "secret")))
	path, want := root, int64(1)
	for level := range leastHeld + 6 {
		path = filepath.Join(path, fmt.Sprint(level))
		must(t, os.Mkdir(path, 0o700))
		must(t, file(filepath.Join(path, "file")))
		must(t, os.MkdirAll(filepath.Join(path, "side", "deeper", "still"), 0o700))
		must(t, file(filepath.Join(path, "side", "deeper", "file")))
		must(t, os.Symlink(outside, filepath.Join(path, "link")))
		want += 7
	}
	result := apply(t, Request{Path: root, GID: group, Workers: mostHeld})
	if result.Entries != want || result.Changed != want {
		t.Errorf("%+v, want %d entries, all changed", result, want)
	}
	if stat := look(t, filepath.Join(outside, "secret")); stat.Gid != 0 {
		t.Errorf("the group %d reached a file outside", stat.Gid)
	}
}

// TestDeepBreadth checks that the walk finds its place in a directory again after it was below, on each filesystem.
func TestDeepBreadth(t *testing.T) {
	const depth, breadth = leastHeld + 2, 2000
	for _, fsType := range []string{"ext4", "xfs", "btrfs"} {
		root := testfs.New(t, fsType, 512)
		path := filepath.Join(root, strings.Repeat("d/", depth))
		for i := range breadth {
			must(t, os.MkdirAll(filepath.Join(path, fmt.Sprint(i), "below"), 0o700))
		}
		want := int64(1 + depth + 2*breadth)
		if fsType == "ext4" {
			want++ // lost+found
		}
		result := apply(t, Request{Path: root, GID: group, Workers: mostHeld})
		if result.Entries != want || result.Changed != want {
			t.Errorf("%s: %+v, want %d entries, all changed", fsType, result, want)
		}
	}
}

// TestDeepTreeIsMoved checks that nothing is given to the group through a way back up that leads elsewhere.
func TestDeepTreeIsMoved(t *testing.T) {
	needRoot(t)
	outside, root := t.TempDir(), t.TempDir()
	must(t, os.MkdirAll(filepath.Join(root, "a", "b", "c"), 0o700))
	must(t, os.Mkdir(filepath.Join(root, "a", "b", "z"), 0o700))
	top, err := os.Open(root)
	must(t, err)
	d := &descent{walker: &walker{want: wanted{gid: group}}, top: hold(top, true)}
	defer d.top.release()
	d.here = d.top
	must(t, d.enter())
	for _, name := range []string{"a", "b"} {
		must(t, d.down(name, 0))
	}
	must(t, d.down("c", 0))
	must(t, os.Mkdir(filepath.Join(outside, "z"), 0o700))
	must(t, os.Rename(filepath.Join(root, "a", "b", "c"), filepath.Join(outside, "c")))
	if err := d.up(); !backends.Is(err, backends.Unavailable) {
		t.Errorf("after the move: %v, want Unavailable", err)
	}
	if stat := look(t, filepath.Join(outside, "z")); stat.Gid != 0 {
		t.Error("what is outside was given to the group")
	}
}

// deep creates nested directories to the depth.
func deep(t *testing.T, depth int) string {
	t.Helper()
	root := t.TempDir()
	t.Cleanup(func() { flatten(t, root) })
	fd, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY, 0)
	must(t, err)
	for range depth {
		must(t, unix.Mkdirat(fd, "d", 0o700))
		next, err := unix.Openat(fd, "d", unix.O_PATH|unix.O_DIRECTORY, 0)
		must(t, err)
		must(t, unix.Close(fd))
		fd = next
	}
	must(t, unix.Close(fd))
	return root
}

// flatten removes the directories of deep: os.RemoveAll needs a descriptor for each level.
func flatten(t *testing.T, root string) {
	t.Helper()
	must(t, os.RemoveAll(filepath.Join(root, "d", "d", "file")))
	for {
		err := os.Rename(filepath.Join(root, "d", "d"), filepath.Join(root, "next"))
		must(t, os.Remove(filepath.Join(root, "d")))
		if err != nil {
			return
		}
		must(t, os.Rename(filepath.Join(root, "next"), filepath.Join(root, "d")))
	}
}

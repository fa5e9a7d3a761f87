package mount

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node/device"
	"github.com/stowage-csi/stowage/pkg/node/filesystem"
	"github.com/stowage-csi/stowage/pkg/safepath"
)

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: needs root, for mounts")
	}
}

func wantKind(t *testing.T, err error, kind backends.Kind) {
	t.Helper()
	if !backends.Is(err, kind) {
		t.Errorf("got error %v (%s), want one of kind %s", err, backends.KindOf(err), kind)
	}
}

// must fails the test on any error.
func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// folder creates a directory whose mounts are unmounted with the test.
func folder(t *testing.T, names ...string) string {
	t.Helper()
	needRoot(t)
	dir := t.TempDir()
	for _, name := range names {
		path := filepath.Join(dir, name)
		if strings.HasPrefix(name, "file") {
			must(t, os.WriteFile(path, nil, 0o600))
		} else {
			must(t, os.Mkdir(path, 0o700))
		}
		t.Cleanup(func() {
			if err := Unmount(context.WithoutCancel(t.Context()), path); err != nil {
				t.Errorf("cleaning up: %v", err)
			}
		})
	}
	return dir
}

func target(t *testing.T, path string) *safepath.Target {
	t.Helper()
	target, err := safepath.OpenTarget(path)
	must(t, err)
	t.Cleanup(func() { _ = target.Close() })
	return target
}

func look(t *testing.T, path string) State {
	t.Helper()
	state, err := Inspect(t.Context(), path)
	must(t, err)
	return state
}

// mountAt mounts the filesystem, and checks that Mount returns the state of the target afterwards.
func mountAt(t *testing.T, fs Filesystem, at *safepath.Target) error {
	t.Helper()
	state, err := Mount(t.Context(), fs, at)
	return shown(t, state, err, at)
}

// bindAt binds the source, and checks that Bind returns the state of the target afterwards.
func bindAt(t *testing.T, source string, at *safepath.Target, readOnly bool) error {
	t.Helper()
	state, err := Bind(source, at, readOnly, nil)
	return shown(t, state, err, at)
}

func shown(t *testing.T, state State, err error, at *safepath.Target) error {
	t.Helper()
	if err != nil {
		return err
	}
	want := look(t, at.Path())
	if want.ReadOnly = false; state != want {
		t.Errorf("said to show %+v, shows %+v", state, want)
	}
	return nil
}

// disk returns a loop device with an ext4 on it, held open until the test ends.
func disk(t *testing.T) *device.Device {
	t.Helper()
	needRoot(t)
	if err := filesystem.Missing("ext4"); err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	path := filepath.Join(t.TempDir(), "volume.img")
	must(t, os.WriteFile(path, nil, 0o600), os.Truncate(path, 16<<20))
	d, err := device.Open(t.Context(), backends.Device{Path: path, Image: true}, device.Options{})
	must(t, err)
	t.Cleanup(func() { _ = d.Close() })
	format(t, d, "ext4")
	return d
}

func format(t *testing.T, d *device.Device, fsType string) {
	t.Helper()
	_, err := filesystem.NewTools(1).Format(t.Context(), filesystem.Request{Path: d.Path, Held: d.File, FSType: fsType})
	must(t, err)
}

func ext4(d *device.Device) Filesystem {
	return Filesystem{Type: "ext4", Source: d.Path, Dev: d.Number()}
}

func TestInspect(t *testing.T) {
	dir := folder(t, "dir", "file")
	must(t, os.Symlink("dir", dir+"/link"))
	if s := look(t, dir+"/none"); s.Exists || s.Mounted {
		t.Errorf("a path that is not there: %+v", s)
	}
	if s := look(t, dir+"/file/below"); s.Exists {
		t.Errorf("a path below a file: %+v", s)
	}
	if s := look(t, dir+"/dir"); !s.Exists || !s.Dir || s.Mounted || s.ReadOnly || s.Ino == 0 || s.MountID == 0 {
		t.Errorf("a directory: %+v", s)
	}
	if s := look(t, dir+"/file"); !s.Exists || s.Dir || s.Mounted {
		t.Errorf("a file: %+v", s)
	}
	if s := look(t, dir+"/link"); !s.Exists || s.Dir || s.SameRoot(look(t, dir+"/dir")) {
		t.Errorf("a symlink was followed: %+v", s)
	}
	if s := look(t, "/proc"); !s.Mounted || !s.Dir {
		t.Errorf("/proc: %+v", s)
	}
	_, err := Inspect(t.Context(), "relative")
	wantKind(t, err, backends.Invalid)
}

func TestBind(t *testing.T) {
	for _, readOnly := range []bool{false, true} {
		dir := folder(t, "source", "target")
		must(t, os.WriteFile(dir+"/source/data", []byte("data"), 0o600))
		must(t, bindAt(t, dir+"/source", target(t, dir+"/target"), readOnly))
		s := look(t, dir+"/target")
		if !s.Mounted || s.ReadOnly != readOnly || !s.SameRoot(look(t, dir+"/source")) ||
			s.MountID == look(t, dir+"/source").MountID {
			t.Errorf("bound read-only %t: %+v", readOnly, s)
		}
		if data, err := os.ReadFile(dir + "/target/data"); err != nil || string(data) != "data" {
			t.Errorf("it shows %q, %v", data, err)
		}
		err := os.WriteFile(dir+"/target/more", nil, 0o600)
		if readOnly != errors.Is(err, unix.EROFS) {
			t.Errorf("writing to a mount that is read-only %t: %v", readOnly, err)
		}
		if look(t, dir+"/source").ReadOnly {
			t.Error("the source became read-only")
		}
		must(t, Unmount(t.Context(), dir+"/target"))
		if look(t, dir+"/target").Mounted {
			t.Error("mounted still")
		}
	}
}

func TestBindFileAndDevice(t *testing.T) {
	dir := folder(t, "fileTarget", "fileDisk", "fileOther")
	must(t, os.WriteFile(dir+"/fileOther", []byte("data"), 0o600))
	must(t, bindAt(t, dir+"/fileOther", target(t, dir+"/fileTarget"), true))
	if s := look(t, dir+"/fileTarget"); !s.Mounted || s.Dir || !s.ReadOnly || !s.SameRoot(look(t, dir+"/fileOther")) {
		t.Errorf("a bound file: %+v", s)
	}
	must(t, unix.Mknod(dir+"/disk", unix.S_IFBLK|0o600, int(unix.Mkdev(7, 200))))
	place := target(t, dir+"/fileDisk")
	must(t, bindAt(t, dir+"/disk", place, false))
	if s := look(t, dir+"/fileDisk"); !s.Mounted || s.Rdev != unix.Mkdev(7, 200) {
		t.Errorf("a bound device node: %+v", s)
	}
	// A repeated publish finds the node in place of the file.
	if created, err := place.MakeFile(0o600); created || err != nil {
		t.Errorf("making the file under a device node: %t, %v", created, err)
	}
	wantKind(t, place.Remove(), backends.InUse)
}

func TestBindRefuses(t *testing.T) {
	dir := folder(t, "source", "target", "busy", "file")
	must(t, os.Symlink("source", dir+"/linkToSource"), os.Symlink("target", dir+"/linkToTarget"))
	must(t, bindAt(t, dir+"/source", target(t, dir+"/busy"), false))
	for name, test := range map[string]struct {
		source, target string
		want           backends.Kind
	}{
		"source is a symlink":           {"linkToSource", "target", backends.Invalid},
		"target is a symlink":           {"source", "linkToTarget", backends.Invalid},
		"source is missing":             {"none", "target", backends.NotFound},
		"target is missing":             {"source", "none", backends.NotFound},
		"directory on a file":           {"source", "file", backends.Invalid},
		"file on a directory":           {"file", "target", backends.Invalid},
		"target is mounted":             {"source", "busy", backends.Exists},
		"source is not in a plain form": {"source/../source", "target", backends.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			wantKind(t, bindAt(t, dir+"/"+test.source, target(t, dir+"/"+test.target), false), test.want)
		})
	}
	if look(t, dir+"/target").Mounted || look(t, dir+"/file").Mounted {
		t.Error("a refused bind is mounted")
	}
}

// The source has changed since the caller looked at it: nothing appears at the target.
func TestBindProves(t *testing.T) {
	dir := folder(t, "source", "target")
	refusal := errors.New("another directory than before")
	var found State
	_, err := Bind(dir+"/source", target(t, dir+"/target"), false, func(s State) error { found = s; return refusal })
	if !errors.Is(err, refusal) || look(t, dir+"/target").Mounted {
		t.Errorf("a refused source: %v, and the target shows %+v", err, look(t, dir+"/target"))
	}
	if !found.SameRoot(look(t, dir+"/source")) {
		t.Errorf("the state to prove is %+v, want that of the source", found)
	}
}

// Mounts below the source do not come along: they belong to other volumes.
func TestBindIsNotRecursive(t *testing.T) {
	dir := folder(t, "source", "target", "other")
	must(t, os.Mkdir(dir+"/source/sub", 0o700), os.WriteFile(dir+"/other/secret", nil, 0o600))
	must(t, bindAt(t, dir+"/other", target(t, dir+"/source/sub"), false))
	defer func() { must(t, Unmount(t.Context(), dir+"/source/sub")) }()
	must(t, bindAt(t, dir+"/source", target(t, dir+"/target"), false))
	if s := look(t, dir+"/target/sub/secret"); s.Exists {
		t.Error("a mount below the source came along")
	}
}

func TestUnmount(t *testing.T) {
	dir := folder(t, "a", "b", "target", "file")
	for _, path := range []string{dir + "/a", dir + "/none", dir + "/none/none", dir + "/file"} {
		if err := Unmount(t.Context(), path); err != nil {
			t.Errorf("unmounting %s, where nothing is: %v", path, err)
		}
	}
	wantKind(t, Unmount(t.Context(), dir+"/../a"), backends.Invalid)
	// A stack of mounts, as left by others.
	for range 5 {
		must(t, unix.Mount(dir+"/a", dir+"/target", "", unix.MS_BIND, ""))
	}
	must(t, Unmount(t.Context(), dir+"/target"))
	if look(t, dir+"/target").Mounted {
		t.Error("a layer is left")
	}
	// Nothing is unmounted through a symlink.
	must(t, bindAt(t, dir+"/a", target(t, dir+"/b"), false), os.Symlink("b", dir+"/link"))
	must(t, Unmount(t.Context(), dir+"/link"))
	if !look(t, dir+"/b").Mounted {
		t.Error("unmounted through a symlink")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantKind(t, Unmount(ctx, dir+"/b"), backends.Unavailable)
	if !look(t, dir+"/b").Mounted {
		t.Error("unmounted after the context's end")
	}
}

func TestUnmountInUse(t *testing.T) {
	dir := folder(t, "target")
	must(t, mountAt(t, ext4(disk(t)), target(t, dir+"/target")))
	f, err := os.Create(dir + "/target/data")
	must(t, err)
	err = Unmount(t.Context(), dir+"/target")
	wantKind(t, err, backends.InUse)
	if err == nil || !strings.Contains(err.Error(), dir+"/target") {
		t.Errorf("the error does not name the path: %v", err)
	}
	if !look(t, dir+"/target").Mounted {
		t.Error("a filesystem that is in use was detached")
	}
	must(t, f.Close(), os.Mkdir(dir+"/target/sub", 0o700))
	// The same is true of a filesystem with a mount inside.
	sub := target(t, dir+"/target/sub")
	must(t, bindAt(t, dir+"/target/sub", sub, false), sub.Close()) // if open, it would keep the filesystem busy itself
	wantKind(t, Unmount(t.Context(), dir+"/target"), backends.InUse)
	must(t, Unmount(t.Context(), dir+"/target/sub"), Unmount(t.Context(), dir+"/target"))
}

// A FUSE filesystem whose server has died can only be unmounted.
func TestServerGone(t *testing.T) {
	dir := folder(t, "target")
	server, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("SKIPPED: needs FUSE: %v", err)
	}
	options := fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", server.Fd())
	must(t, unix.Mount("fuse", dir+"/target", "fuse", 0, options))
	held, err := unix.Open(dir+"/target", unix.O_PATH|unix.O_CLOEXEC, 0) // keeps it busy
	must(t, err, server.Close())
	if _, err := Inspect(t.Context(), dir+"/target"); !Corrupted(err) {
		t.Errorf("Inspect = %v, which is not recognised as corrupted", err)
	}
	if _, err := target(t, dir+"/target").MakeDir(0o700); !Corrupted(err) {
		t.Errorf("MakeDir = %v, which is not recognised as corrupted", err)
	}
	must(t, Unmount(t.Context(), dir+"/target"), unix.Close(held))
	if look(t, dir+"/target").Mounted {
		t.Error("mounted still")
	}
}

// A filesystem that was shut down answers everything with EIO: it is recognised, and unmounted.
func TestCorrupted(t *testing.T) {
	dir := folder(t, "target")
	d := disk(t)
	must(t, mountAt(t, ext4(d), target(t, dir+"/target")))
	root, err := os.Open(dir + "/target")
	must(t, err)
	const ext4Shutdown, noLogFlush = 0x8004587d, 2
	mode := uint32(noLogFlush)
	must(t, unix.IoctlSetPointerInt(int(root.Fd()), ext4Shutdown, int(mode)), root.Close())
	if err := os.WriteFile(dir+"/target/x", nil, 0o600); !Corrupted(err) {
		t.Errorf("writing to a shut down filesystem: %v, which is not recognised as corrupted", err)
	}
	must(t, Unmount(t.Context(), dir+"/target"))
	if look(t, dir+"/target").Mounted {
		t.Error("mounted still")
	}
}

func TestCorruptedIsFoundDeep(t *testing.T) {
	for _, errno := range []unix.Errno{unix.ENOTCONN, unix.ESTALE, unix.EIO} {
		err := backends.Errorf(backends.Unavailable, "outer: %w",
			backends.Errorf(backends.Unknown, "inner: %w", &os.PathError{Err: errno}))
		if !Corrupted(err) {
			t.Errorf("%v is not recognised", err)
		}
	}
	for _, err := range []error{nil, unix.ENOENT, errors.New("EIO"), context.Canceled} {
		if Corrupted(err) {
			t.Errorf("%v is taken for a corrupted mount", err)
		}
	}
}

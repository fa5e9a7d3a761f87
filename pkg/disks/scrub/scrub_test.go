package scrub_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/disks/scrub"
	"github.com/stowage-csi/stowage/pkg/tree"
	"github.com/stowage-csi/stowage/tests/mountns"
	"github.com/stowage-csi/stowage/tests/testfs"
)

const canary = "the canary of an earlier tenant"

func TestMain(m *testing.M) { os.Exit(mountns.IsolateInMemory(m.Run)) }

func ignore(int) {}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// fill leaves in a filesystem what a hostile tenant could, and creates a file outside of it that must stay.
func fill(t *testing.T, at string) (outside string) {
	t.Helper()
	outside = filepath.Join(t.TempDir(), "outside")
	must(t, os.WriteFile(outside, []byte("mine"), 0o600))
	deep := at
	for range 200 {
		deep = filepath.Join(deep, "d")
	}
	must(t, os.MkdirAll(deep, 0o700))
	must(t, os.WriteFile(filepath.Join(deep, "file"), []byte(canary), 0o400))
	must(t, os.Symlink(outside, filepath.Join(at, "link")))
	must(t, os.Symlink(filepath.Dir(outside), filepath.Join(at, ".stowage-scrub")))
	must(t, unix.Mkfifo(filepath.Join(at, "fifo"), 0o600))
	must(t, unix.Mknod(filepath.Join(at, "device"), unix.S_IFBLK|0o600, int(unix.Mkdev(254, 0))))
	must(t, os.WriteFile(filepath.Join(at, "\xff\n\x01"), []byte(canary), 0))
	must(t, os.Mkdir(filepath.Join(at, "closed"), 0))
	must(t, os.WriteFile(filepath.Join(at, "closed", "file"), []byte(canary), 0))
	must(t, os.Chown(filepath.Join(at, "closed"), 4711, 4711))
	must(t, unix.Setxattr(at, "user.canary", []byte(canary), 0))
	for i := range 300 {
		must(t, os.WriteFile(filepath.Join(at, strings.Repeat("x", i%250+1)), []byte(canary), 0o600))
	}
	return outside
}

func entries(t *testing.T, at string) (names []string) {
	t.Helper()
	list, err := os.ReadDir(at)
	must(t, err)
	for _, entry := range list {
		names = append(names, entry.Name())
	}
	return names
}

func TestFilesystem(t *testing.T) {
	for kind, size := range map[string]int64{"ext4": 64, "xfs": 320} {
		t.Run(kind, func(t *testing.T) {
			at := testfs.New(t, kind, size)
			before := entries(t, at)
			outside := fill(t, at)
			if len(before) > 0 {
				must(t, os.WriteFile(filepath.Join(at, "lost+found", "file"), []byte(canary), 0o600))
			}
			must(t, scrub.Path(t.Context(), at, ignore))
			if after := entries(t, at); strings.Join(after, " ") != strings.Join(before, " ") {
				t.Errorf("a new filesystem holds %q, and a scrubbed one %q", before, after)
			}
			if len(before) > 0 && len(entries(t, filepath.Join(at, "lost+found"))) > 0 {
				t.Error("lost+found is not empty")
			}
			if _, err := unix.Getxattr(at, "user.canary", nil); !errors.Is(err, unix.ENODATA) {
				t.Errorf("the attribute of the root: %v", err)
			}
			if text, err := os.ReadFile(outside); err != nil || string(text) != "mine" {
				t.Errorf("the file outside: %q, %v", text, err)
			}
			must(t, scrub.Path(t.Context(), at, ignore)) // An empty one is as well.
		})
	}
}

// TestGoesOn scrubs after a killed scrub, which left a trash directory with entries under the next numbers.
func TestGoesOn(t *testing.T) {
	at := testfs.New(t, "ext4", 64)
	must(t, os.MkdirAll(filepath.Join(at, ".stowage-scrub", "1", "sub"), 0o700))
	must(t, os.WriteFile(filepath.Join(at, ".stowage-scrub", "2"), []byte(canary), 0o600))
	fillOne := filepath.Join(at, "file")
	must(t, os.WriteFile(fillOne, []byte(canary), 0o600))
	must(t, scrub.Path(t.Context(), at, ignore))
	if left := entries(t, at); len(left) != 1 || left[0] != "lost+found" {
		t.Errorf("left: %q", left)
	}
}

// TestForeignLostFound checks that a lost+found that a tenant made is removed.
func TestForeignLostFound(t *testing.T) {
	at := testfs.New(t, "ext4", 64)
	must(t, os.Chmod(filepath.Join(at, "lost+found"), 0o755))
	must(t, scrub.Path(t.Context(), at, ignore))
	if left := entries(t, at); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// TestLateWriter checks that a writer cannot add files through a directory that was open before.
func TestLateWriter(t *testing.T) {
	at := testfs.New(t, "ext4", 64)
	must(t, os.Mkdir(filepath.Join(at, "dir"), 0o755))
	late, err := os.Open(filepath.Join(at, "dir"))
	must(t, err)
	defer late.Close()
	must(t, scrub.Path(t.Context(), at, ignore))
	if _, err := unix.Openat(int(late.Fd()), "file", unix.O_CREAT|unix.O_WRONLY, 0o600); err == nil {
		t.Error("a writer can still make files")
	}
}

// putBack moves a directory with a mount inside out of the trash, so that it is unmounted where it was mounted.
func putBack(t *testing.T, at, inside string) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(at, ".stowage-scrub", "*", filepath.Base(inside)))
	must(t, err)
	for _, path := range found {
		must(t, os.Rename(filepath.Dir(path), filepath.Join(at, filepath.Dir(inside))))
	}
}

func TestStopsAtMounts(t *testing.T) {
	at, other := testfs.New(t, "ext4", 64), t.TempDir()
	must(t, os.WriteFile(filepath.Join(other, "file"), []byte("mine"), 0o600))
	for _, inside := range []string{"mounted", "a/mounted", "lost+found/mounted"} {
		target := filepath.Join(at, inside)
		must(t, os.MkdirAll(target, 0o700))
		t.Run(inside, func(t *testing.T) {
			testfs.Bind(t, other, target)
			err := scrub.Path(t.Context(), at, ignore)
			putBack(t, at, inside)
			if !errors.Is(err, tree.ErrMount) && !errors.Is(err, unix.EBUSY) {
				t.Errorf("with a mount inside: %v", err)
			}
			if text, err := os.ReadFile(filepath.Join(other, "file")); err != nil || string(text) != "mine" {
				t.Errorf("the file of the mount: %q, %v", text, err)
			}
		})
	}
}

// TestImmutable checks that a file that cannot be removed is a failure, never a success.
func TestImmutable(t *testing.T) {
	at := testfs.New(t, "ext4", 64)
	file, err := os.Create(filepath.Join(at, "immutable"))
	must(t, err)
	defer file.Close()
	must(t, unix.IoctlSetPointerInt(int(file.Fd()), unix.FS_IOC_SETFLAGS, 0x10)) // FS_IMMUTABLE_FL
	if err := scrub.Path(t.Context(), at, ignore); !errors.Is(err, unix.EPERM) {
		t.Errorf("with an immutable file: %v", err)
	}
	must(t, unix.IoctlSetPointerInt(int(file.Fd()), unix.FS_IOC_SETFLAGS, 0))
	must(t, scrub.Path(t.Context(), at, ignore))
}

func TestDevice(t *testing.T) {
	image := filepath.Join(t.TempDir(), "disk.img")
	const size = 160 << 20
	must(t, os.WriteFile(image, nil, 0o600))
	must(t, os.Truncate(image, size))
	node := testfs.Attach(t, image)
	testfs.Format(t, "ext4", node)
	disk, err := os.OpenFile(node, os.O_RDWR, 0)
	must(t, err)
	defer disk.Close()
	for _, offset := range []int64{512, size / 2, size - 4096} {
		_, err := disk.WriteAt([]byte(canary), offset)
		must(t, err)
	}
	must(t, disk.Sync())
	var percents []int
	must(t, scrub.Path(t.Context(), node, func(percent int) { percents = append(percents, percent) }))
	text, err := os.ReadFile(image)
	must(t, err)
	if len(bytes.Trim(text, "\x00")) > 0 {
		t.Error("not every byte is zero")
	}
	if len(percents) != 3 || percents[2] != 100 {
		t.Errorf("the progress was %d", percents)
	}
}

// TestMountedDevice checks that a device with a mounted filesystem is not changed.
func TestMountedDevice(t *testing.T) {
	image := filepath.Join(t.TempDir(), "disk.img")
	must(t, os.WriteFile(image, nil, 0o600))
	must(t, os.Truncate(image, 64<<20))
	node := testfs.Attach(t, image)
	testfs.Format(t, "ext4", node)
	at := testfs.Mount(t, node)
	must(t, os.WriteFile(filepath.Join(at, "file"), []byte("mine"), 0o600))
	if err := scrub.Path(t.Context(), node, ignore); !errors.Is(err, unix.EBUSY) {
		t.Errorf("a mounted device: %v", err)
	}
	if text, err := os.ReadFile(filepath.Join(at, "file")); err != nil || string(text) != "mine" {
		t.Errorf("its file: %q, %v", text, err)
	}
}

// TestRefuses checks paths that are no volumes.
func TestRefuses(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	must(t, os.WriteFile(file, []byte("mine"), 0o600))
	for path, sentence := range map[string]string{
		dir: "nothing is mounted at", file: "is neither a directory nor a block device",
		filepath.Join(dir, "none"): "no such file",
	} {
		if err := scrub.Path(t.Context(), path, ignore); err == nil || !strings.Contains(err.Error(), sentence) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if len(entries(t, dir)) != 1 {
		t.Error("the file is gone")
	}
}

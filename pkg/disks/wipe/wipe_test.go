package wipe_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/disks/method"
	"github.com/stowage-csi/stowage/pkg/disks/wipe"
	"github.com/stowage-csi/stowage/pkg/tree"
	"github.com/stowage-csi/stowage/tests/mountns"
	"github.com/stowage-csi/stowage/tests/testfs"
)

func TestMain(m *testing.M) { os.Exit(mountns.IsolateInMemory(m.Run)) }

const (
	size   = 160 << 20 // three steps
	canary = "the canary of an earlier tenant"
)

// blank returns a device of zeros.
func blank(t *testing.T, size int64) (*os.File, string) {
	t.Helper()
	image := filepath.Join(t.TempDir(), "disk.img")
	must(t, errors.Join(os.WriteFile(image, nil, 0o600), os.Truncate(image, size)))
	f, err := os.OpenFile(testfs.Attach(t, image), os.O_RDWR|unix.O_EXCL, 0)
	must(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f, image
}

// disk returns a device with an ext4 and canaries at its beginning, in its middle and at its end.
func disk(t *testing.T) (*os.File, string) {
	t.Helper()
	f, image := blank(t, size)
	testfs.Format(t, "ext4", image)
	for _, offset := range []int64{512, size / 2, size - 4096} {
		if _, err := f.WriteAt([]byte(canary), offset); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	return f, image
}

// content returns the contents of the disk below the device, where no cache of the device can hide them.
func content(t *testing.T, image string) []byte {
	t.Helper()
	text, err := os.ReadFile(image)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func ignore(int64) error { return nil }

func TestWipe(t *testing.T) {
	for m, readable := range map[method.Method]int{method.Discard: 0, method.Zero: 0, method.Shred: 0,
		method.Signatures: 1, method.None: 3} {
		t.Run(string(m), func(t *testing.T) {
			f, image := disk(t)
			var last int64
			d := wipe.Device{File: f, SizeBytes: size, Note: func(position int64) error { last = position; return nil }}
			if err := d.Wipe(t.Context(), m, 0); err != nil {
				t.Fatal(err)
			}
			if last != wipe.Total(m, size) {
				t.Errorf("the last position is %d, want %d", last, wipe.Total(m, size))
			}
			text := content(t, image)
			if found := bytes.Count(text, []byte(canary)); found != readable {
				t.Errorf("%d canaries can be read, want %d", found, readable)
			}
			if readable == 0 && len(bytes.Trim(text, "\x00")) > 0 {
				t.Error("not every byte is zero")
			}
		})
	}
}

// TestWipeGoesOn interrupts each wipe after each step and resumes at the last noted position.
func TestWipeGoesOn(t *testing.T) {
	for _, m := range []method.Method{method.Zero, method.Shred} {
		t.Run(string(m), func(t *testing.T) {
			f, image := disk(t)
			killed, position, lives := errors.New("killed"), int64(0), 0
			for ; lives < 20; lives++ {
				d := wipe.Device{File: f, SizeBytes: size, Note: func(at int64) error { position = at; return killed }}
				err := d.Wipe(t.Context(), m, position)
				if err == nil {
					break
				}
				if !errors.Is(err, killed) {
					t.Fatal(err)
				}
			}
			if len(bytes.Trim(content(t, image), "\x00")) > 0 || lives != 3*int(wipe.Total(m, size)/size) {
				t.Errorf("after %d lives not every byte is zero", lives)
			}
		})
	}
}

// TestNotedWhenDurable checks that each position is noted only after the device has written its cache: what is before
// the position is not wiped again after a loss of power.
func TestNotedWhenDurable(t *testing.T) {
	for _, m := range []method.Method{method.Discard, method.Zero, method.Shred} {
		t.Run(string(m), func(t *testing.T) {
			f, _ := disk(t)
			before := flushes(t, f)
			d := wipe.Device{File: f, SizeBytes: size, Note: func(position int64) error {
				now := flushes(t, f)
				if now == before {
					t.Errorf("position %d is noted, and the device has not written its cache since the step before", position)
				}
				before = now
				return nil
			}}
			must(t, d.Wipe(t.Context(), m, 0))
		})
	}
}

// flushes returns how often a device was told to write its cache.
func flushes(t *testing.T, f *os.File) int {
	t.Helper()
	const field = 15 // "flush I/Os" in the kernel's Documentation/block/stat.rst
	text, err := os.ReadFile(filepath.Join("/sys/block", filepath.Base(f.Name()), "stat"))
	must(t, err)
	count, err := strconv.Atoi(strings.Fields(string(text))[field])
	must(t, err)
	return count
}

// TestWipeEndsWithContext checks that a wipe stops at the next step.
func TestWipeEndsWithContext(t *testing.T) {
	f, _ := disk(t)
	ctx, cancel := context.WithCancel(t.Context())
	d := wipe.Device{File: f, SizeBytes: size, Note: func(int64) error { cancel(); return nil }}
	if err := d.Wipe(ctx, method.Zero, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("the wipe ends with %v", err)
	}
}

// TestBrokenPromise checks that a wipe that leaves something is an error. Here the position claims that the wipe was
// done.
func TestBrokenPromise(t *testing.T) {
	f, _ := disk(t)
	d := wipe.Device{File: f, SizeBytes: size, Note: ignore}
	if err := d.Wipe(t.Context(), method.Zero, size); err == nil || !strings.Contains(err.Error(), "still holds ext4") {
		t.Errorf("an ext4 that is still there: %v", err)
	}
	if err := d.Wipe(t.Context(), "rinse", 0); err == nil || !strings.Contains(err.Error(), `"rinse"`) {
		t.Errorf("a method that is none: %v", err)
	}
}

// TestKeptBlocks has a device keep blocks that it was told to drop, where no sample is read. They are set to zero, and
// nothing else is written.
func TestKeptBlocks(t *testing.T) {
	const large = 3 << 29
	under, image := blank(t, large) // A loop device on a file would reveal what the file holds.
	must(t, under.Close())
	f, err := os.OpenFile(testfs.Attach(t, under.Name()), os.O_RDWR|unix.O_EXCL, 0)
	must(t, err)
	t.Cleanup(func() { _ = f.Close() })
	keep := func(position int64) (err error) {
		if position != large {
			return nil
		}
		for _, kept := range []int64{1084<<20 + 3<<12, 1084<<20 + 9<<20, large - int64(len(canary))} {
			_, wrong := f.WriteAt([]byte(canary), kept)
			err = errors.Join(err, wrong)
		}
		return errors.Join(err, f.Sync())
	}
	must(t, wipe.Device{File: f, SizeBytes: large, Note: keep}.Wipe(t.Context(), method.Discard, 0))
	if n := bytes.Count(content(t, image), []byte(canary)); n > 0 {
		t.Errorf("%d canaries can be read", n)
	}
	var stat unix.Stat_t
	must(t, unix.Stat(image, &stat))
	if most := int64(3 * 4 << 20); stat.Blocks*512 > most {
		t.Errorf("%d bytes were written, want %d at most", stat.Blocks*512, most)
	}
}

// TestNoDiscard wipes a device that cannot drop blocks.
func TestNoDiscard(t *testing.T) {
	const small = 9 << 20
	dir := t.TempDir()
	must(t, unix.Mount("x", dir, "ramfs", 0, "")) // It does not support holes in files.
	t.Cleanup(func() { must(t, unix.Unmount(dir, 0)) })
	image := filepath.Join(dir, "disk.img")
	must(t, os.WriteFile(image, bytes.Repeat([]byte(canary+"\n"), small/(len(canary)+1)), 0o600))
	t.Run("wiped", func(t *testing.T) {
		f, err := os.OpenFile(testfs.Attach(t, image), os.O_RDWR|unix.O_EXCL, 0)
		must(t, err)
		defer f.Close()
		must(t, wipe.Device{File: f, SizeBytes: small, Note: ignore}.Wipe(t.Context(), method.Discard, 0))
	})
	if len(bytes.Trim(content(t, image), "\x00")) > 0 {
		t.Error("not every byte is zero")
	}
}

// TestNoBytes checks that a device without bytes, such as a disk that was just pulled, does not count as wiped.
func TestNoBytes(t *testing.T) {
	f, _ := disk(t)
	for _, m := range []method.Method{method.Discard, method.Zero, method.Shred, method.Signatures, method.None} {
		for _, bytes := range []int64{0, -1} {
			err := wipe.Device{File: f, SizeBytes: bytes, Note: ignore}.Wipe(t.Context(), m, 0)
			if err == nil || !strings.Contains(err.Error(), "is gone") {
				t.Errorf("%s of %d bytes ends with %v", m, bytes, err)
			}
		}
	}
}

// TestTree empties a mount point with everything that a tenant could leave, and changes nothing outside.
func TestTree(t *testing.T) {
	at := testfs.New(t, "ext4", 64)
	outside := filepath.Join(t.TempDir(), "outside")
	must(t, os.WriteFile(outside, []byte("mine"), 0o600))
	deep := at
	for range 200 {
		deep = filepath.Join(deep, "d")
	}
	must(t, os.MkdirAll(deep, 0o700))
	must(t, os.Symlink(outside, filepath.Join(at, "link")))
	must(t, os.Symlink(filepath.Dir(outside), filepath.Join(at, "dirlink")))
	must(t, os.WriteFile(filepath.Join(deep, "file"), []byte(canary), 0o400))
	must(t, unix.Mknod(filepath.Join(at, "device"), unix.S_IFBLK|0o600, int(unix.Mkdev(254, 0))))
	must(t, unix.Mkfifo(filepath.Join(at, "fifo"), 0o600))
	must(t, unix.Setxattr(at, "user.canary", []byte(canary), 0))
	for i := range 1000 {
		must(t, os.WriteFile(filepath.Join(at, "f"+strings.Repeat("x", i%200)+string(rune('a'+i%26))), nil, 0o600))
	}
	dir, err := os.Open(at)
	must(t, err)
	defer dir.Close()
	must(t, wipe.Tree(t.Context(), dir))
	entries, err := os.ReadDir(at)
	if err != nil || len(entries) > 0 {
		t.Errorf("left: %v (%v)", entries, err)
	}
	if _, err := unix.Getxattr(at, "user.canary", nil); !errors.Is(err, unix.ENODATA) {
		t.Errorf("the attribute: %v", err)
	}
	if text, err := os.ReadFile(outside); err != nil || string(text) != "mine" {
		t.Errorf("the file outside: %q, %v", text, err)
	}
}

// TestTreeStopsAtMounts checks that nothing in a mount inside is removed.
func TestTreeStopsAtMounts(t *testing.T) {
	at, other := testfs.New(t, "ext4", 64), t.TempDir()
	must(t, os.WriteFile(filepath.Join(other, "file"), []byte("mine"), 0o600))
	inside := filepath.Join(at, "inside")
	must(t, os.Mkdir(inside, 0o700))
	testfs.Bind(t, other, inside)
	dir, err := os.Open(at)
	must(t, err)
	defer dir.Close()
	if err := wipe.Tree(t.Context(), dir); !errors.Is(err, tree.ErrMount) {
		t.Errorf("with a mount inside: %v", err)
	}
	if text, err := os.ReadFile(filepath.Join(other, "file")); err != nil || string(text) != "mine" {
		t.Errorf("the file of the mount: %q, %v", text, err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

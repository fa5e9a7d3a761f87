package filecopy

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/tests/testfs"
)

const size = 8 << 20

// sparseFile creates a file of size bytes with data at its beginning, at 4 MiB and at its end.
func sparseFile(t *testing.T, dir string) *os.File {
	t.Helper()
	file, err := os.Create(filepath.Join(dir, "source"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	block := bytes.Repeat([]byte("data"), 1024)
	for _, offset := range []int64{0, 4 << 20, size - int64(len(block))} {
		if _, err := file.WriteAt(block, offset); err != nil {
			t.Fatal(err)
		}
	}
	return file
}

func emptyFile(t *testing.T, dir string) *os.File {
	t.Helper()
	file, err := os.Create(filepath.Join(dir, "copy"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return file
}

// used returns how many bytes of blocks a file has.
func used(t *testing.T, file *os.File) int64 {
	t.Helper()
	if err := file.Sync(); err != nil {
		t.Fatal(err)
	}
	var stat unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &stat); err != nil {
		t.Fatal(err)
	}
	return stat.Blocks * 512
}

func sameContents(t *testing.T, a, b *os.File) {
	t.Helper()
	one, err := os.ReadFile(a.Name())
	if err != nil {
		t.Fatal(err)
	}
	other, err := os.ReadFile(b.Name())
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(one, other) {
		t.Errorf("%s and %s differ: they have %d and %d bytes", a.Name(), b.Name(), len(one), len(other))
	}
}

// shared reports whether the first block of both files is the same on disk (ioctl FIEMAP, as shown by filefrag).
func shared(t *testing.T, a, b *os.File) bool {
	t.Helper()
	first := func(file *os.File) string {
		if err := file.Sync(); err != nil {
			t.Fatal(err)
		}
		fields := bytes.Fields([]byte(testfs.Run(t, "filefrag", "-v", file.Name())))
		for i, field := range fields {
			if string(field) == "0:" && i+3 < len(fields) {
				return string(fields[i+3])
			}
		}
		t.Fatalf("filefrag shows no extent of %s", file.Name())
		return ""
	}
	return first(a) == first(b)
}

func TestDuplicate(t *testing.T) {
	for _, test := range []struct {
		name   string
		dir    func(*testing.T) string
		clones bool
	}{
		{"host", func(t *testing.T) string { return t.TempDir() }, false},
		{"ext4", func(t *testing.T) string { return testfs.New(t, "ext4", 64) }, false},
		{"xfs", func(t *testing.T) string { return testfs.New(t, "xfs", 512) }, true},
		{"btrfs", func(t *testing.T) string { return testfs.New(t, "btrfs", 256) }, true},
	} {
		for _, blocks := range []Blocks{Shared, Own} {
			name := test.name + map[Blocks]string{Shared: " shared", Own: " own"}[blocks]
			t.Run(name, func(t *testing.T) {
				dir := test.dir(t)
				can, err := CanClone(dir)
				if err != nil {
					t.Fatal(err)
				}
				if test.name != "host" && can != test.clones {
					t.Errorf("CanClone is %t, want %t", can, test.clones)
				}
				src, dst := sparseFile(t, dir), emptyFile(t, dir)
				if err := Duplicate(t.Context(), dst, src, size, blocks); err != nil {
					t.Fatal(err)
				}
				sameContents(t, src, dst)
				if have, most := used(t, dst), int64(1<<20); have > most {
					t.Errorf("the copy takes %d bytes, want at most %d: its holes are filled", have, most)
				}
				if have := shared(t, src, dst); have != (can && blocks == Shared) {
					t.Errorf("the blocks are shared: %t, want %t", have, can && blocks == Shared)
				}
			})
		}
	}
}

func TestDuplicateCutsAndPads(t *testing.T) {
	for _, blocks := range []Blocks{Shared, Own} {
		for _, wanted := range []int64{0, 1, 4<<20 + 17, size, size + 4096} {
			dir := t.TempDir()
			src, dst := sparseFile(t, dir), emptyFile(t, dir)
			if err := Duplicate(t.Context(), dst, src, wanted, blocks); err != nil {
				t.Fatal(err)
			}
			whole, err := os.ReadFile(src.Name())
			if err != nil {
				t.Fatal(err)
			}
			want := make([]byte, wanted)
			copy(want, whole)
			if have, err := os.ReadFile(dst.Name()); err != nil || !bytes.Equal(have, want) {
				t.Errorf("a copy of %d bytes has %d bytes that are not the source's, %v", wanted, len(have), err)
			}
		}
	}
}

func TestAcrossFilesystems(t *testing.T) {
	src := sparseFile(t, testfs.New(t, "ext4", 64))
	dst := emptyFile(t, testfs.New(t, "btrfs", 256))
	if err := Clone(dst, src); !NotSupported(err) {
		t.Errorf("Clone across filesystems: got %v, want a failure that is NotSupported", err)
	}
	if err := Duplicate(t.Context(), dst, src, size, Shared); err != nil {
		t.Fatal(err)
	}
	sameContents(t, src, dst)
}

func TestContextEndsTheCopy(t *testing.T) {
	dir := t.TempDir()
	src, dst := sparseFile(t, dir), emptyFile(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range []error{Duplicate(ctx, dst, src, size, Shared), Copy(ctx, dst, src, size, Own)} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("a copy whose context has ended: got %v, want %v", err, context.Canceled)
		}
	}
}

func TestFullFilesystem(t *testing.T) {
	dir := testfs.New(t, "ext4", 16)
	src := emptyFile(t, t.TempDir())
	if _, err := src.Write(make([]byte, 32<<20)); err != nil {
		t.Fatal(err)
	}
	for _, blocks := range []Blocks{Shared, Own} {
		if err := Duplicate(t.Context(), emptyFile(t, dir), src, 32<<20, blocks); !errors.Is(err, unix.ENOSPC) {
			t.Errorf("a copy that is too large: got %v, want %v", err, unix.ENOSPC)
		}
	}
}

func TestFailures(t *testing.T) {
	dir := t.TempDir()
	src, dst := sparseFile(t, dir), emptyFile(t, dir)
	src.Close()
	if err := Duplicate(t.Context(), dst, src, size, Own); err == nil {
		t.Error("a copy of a closed file succeeded")
	}
	if _, err := CanClone(filepath.Join(dir, "missing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("CanClone in a missing directory: got %v, want %v", err, os.ErrNotExist)
	}
}

// TestOwnBytes counts what a file shares with another and what it does not.
func TestOwnBytes(t *testing.T) {
	for fsType, clones := range map[string]bool{"ext4": false, "xfs": true, "btrfs": true} {
		t.Run(fsType, func(t *testing.T) {
			dir := testfs.New(t, fsType, 512)
			dst := emptyFile(t, dir)
			src, err := os.Create(filepath.Join(dir, "source"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { src.Close() })
			own := func(file *os.File, want int64) {
				t.Helper()
				if err := file.Sync(); err != nil {
					t.Fatal(err)
				}
				if have, err := OwnBytes(t.Context(), file); have != want || err != nil {
					t.Errorf("%d bytes are the file's own, %v; want %d", have, err, want)
				}
			}
			own(src, 0)
			block := bytes.Repeat([]byte("data"), 16<<10)
			for i := range int64(1000) { // More extents than are requested at a time, with holes between them.
				if _, err := src.WriteAt(block, i*2*int64(len(block))); err != nil {
					t.Fatal(err)
				}
			}
			all := 1000 * int64(len(block))
			own(src, all)
			if err := Duplicate(t.Context(), dst, src, 2*all, Shared); err != nil {
				t.Fatal(err)
			}
			if !clones {
				own(src, all)
				own(dst, all)
				return
			}
			own(src, 0)
			own(dst, 0)
			if _, err := dst.WriteAt(block, 0); err != nil {
				t.Fatal(err)
			}
			own(dst, int64(len(block)))
			own(src, int64(len(block)))
		})
	}
}

package tree

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

	"github.com/stowage-csi/stowage/tests/testfs"
)

// isEmpty checks that a directory contains only the names.
func isEmpty(t *testing.T, dir string, but ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	if len(entries) != len(but) {
		t.Errorf("%s has %v, want %q", dir, entries, but)
	}
}

func TestRemove(t *testing.T) {
	dir := filepath.Dir(richTree(t))
	must(t, Remove(t.Context(), filepath.Join(dir, "source")))
	isEmpty(t, dir)
	must(t, Remove(t.Context(), filepath.Join(dir, "source")))
	must(t, Remove(t.Context(), filepath.Join(dir, "missing", "below")))
	file := filepath.Join(dir, "file")
	must(t, os.WriteFile(file, nil, 0o600))
	must(t, Remove(t.Context(), file))
	isEmpty(t, dir)
}

func TestRemoveLeavesWhatLinksLeadTo(t *testing.T) {
	outside, dir := t.TempDir(), t.TempDir()
	must(t, os.WriteFile(filepath.Join(outside, "kept"), nil, 0o600))
	tree := filepath.Join(dir, "tree")
	must(t, os.MkdirAll(filepath.Join(tree, "sub"), 0o700))
	must(t, os.Symlink(outside, filepath.Join(tree, "sub", "link")))
	must(t, Remove(t.Context(), tree))
	isEmpty(t, dir)
	isEmpty(t, outside, "kept")
}

func TestRemoveManyEntries(t *testing.T) {
	dir := t.TempDir()
	tree := filepath.Join(dir, "tree")
	must(t, os.Mkdir(tree, 0o700))
	for i := range 3*batch + 1 {
		must(t, os.WriteFile(filepath.Join(tree, fmt.Sprint(i)), nil, 0o600))
	}
	must(t, Remove(t.Context(), tree))
	isEmpty(t, dir)
}

func TestRemoveAnyDepth(t *testing.T) {
	top := deepTree(t, 1500)
	blocker := top + ".1" // the target for a part of the tree that is moved up
	must(t, os.WriteFile(blocker, nil, 0o600))
	must(t, Remove(t.Context(), top))
	isEmpty(t, filepath.Dir(top), filepath.Base(blocker))
}

// A deep directory with many entries leaves few names beside the top, whenever its removal is interrupted.
func TestRemoveWideAndDeep(t *testing.T) {
	const width = 20_000
	for _, most := range []int{15_000, 1 << 20} {
		name := deepTree(t, flattenDepth)
		dir := filepath.Dir(name)
		bottom := filepath.Join(name, strings.Repeat("d/", flattenDepth-1))
		for i := range width {
			must(t, os.MkdirAll(filepath.Join(bottom, fmt.Sprint(i), "sub"), 0o700))
		}
		top, err := os.Open(dir)
		must(t, err)
		defer top.Close()
		err = removeIn(t.Context(), top, filepath.Base(name), most)
		entries, readErr := os.ReadDir(dir)
		must(t, readErr)
		switch {
		case most < width && (!errors.Is(err, ErrEndless) || len(entries) > mostPending+1):
			t.Errorf("it ended with %v and left %d names, want %d at most", err, len(entries), mostPending+1)
		case most > width && (err != nil || len(entries) > 0):
			t.Errorf("it ended with %v and left %d names, want none", err, len(entries))
		}
	}
}

func TestRemoveStopsAtMounts(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	must(t, os.WriteFile(filepath.Join(outside, "kept"), nil, 0o600))
	inside := filepath.Join(dir, "tree", "sub", "mounted")
	must(t, os.MkdirAll(inside, 0o700))
	t.Run("mounted", func(t *testing.T) {
		testfs.Bind(t, outside, inside)
		err := Remove(t.Context(), filepath.Join(dir, "tree"))
		if !errors.Is(err, ErrMount) && !errors.Is(err, unix.EBUSY) {
			t.Errorf("got %v, want a failure that names the mount", err)
		}
		isEmpty(t, outside, "kept")
	})
	isEmpty(t, outside, "kept")
	must(t, Remove(t.Context(), filepath.Join(dir, "tree")))
	isEmpty(t, dir)
}

func TestRemoveStopsWithItsContext(t *testing.T) {
	src := richTree(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Remove(ctx, src); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	if _, err := os.Lstat(filepath.Join(src, "file")); errors.Is(err, fs.ErrNotExist) {
		t.Error("it removed something all the same")
	}
}

func TestRemoveReportsWhatCannotBeRemoved(t *testing.T) {
	testfs.NeedRoot(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	must(t, os.WriteFile(file, nil, 0o600))
	t.Cleanup(func() { must(t, setImmutable(file, 0)) })
	must(t, setImmutable(file, unix.STATX_ATTR_IMMUTABLE))
	if err := Remove(t.Context(), file); !errors.Is(err, unix.EPERM) {
		t.Errorf("got %v, want %v", err, unix.EPERM)
	}
}

// setImmutable sets the flags of chattr(1), FS_IMMUTABLE_FL or none (ioctl_iflags(2)).
func setImmutable(path string, flags int) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	return unix.IoctlSetPointerInt(int(file.Fd()), unix.FS_IOC_SETFLAGS, flags)
}

// TestRemoveDeepUnderALongName removes a tree whose name leaves no room for a number behind it, which a directory gets
// that is moved beside the top.
func TestRemoveDeepUnderALongName(t *testing.T) {
	top := t.TempDir()
	name := strings.Repeat("n", 255)
	must(t, os.MkdirAll(filepath.Join(top, name, strings.Repeat("d/", 150)), 0o755))
	must(t, Remove(t.Context(), filepath.Join(top, name)))
	isEmpty(t, top)
}

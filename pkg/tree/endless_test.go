package tree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"github.com/stowage-csi/stowage/tests/testfs"
)

// tooMany names are shown before a test ends a walk that would go on forever.
const tooMany = 200_000

// maker is a directory in which a hostile server shows another name each time, of a file, of another maker, or, with
// the kind 0, of nothing. All of them can be removed and renamed.
type maker struct {
	fs.Inode

	kind  uint32
	shown *atomic.Int64
	end   context.CancelFunc
}

func (m *maker) Readdir(context.Context) (fs.DirStream, syscall.Errno) { return &madeUp{m}, 0 }

func (m *maker) Lookup(ctx context.Context, _ string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	switch m.kind {
	case 0:
		return nil, syscall.ENOENT
	case fuse.S_IFDIR:
		return m.NewInode(ctx, &maker{kind: m.kind, shown: m.shown, end: m.end}, fs.StableAttr{Mode: m.kind}), 0
	}
	out.Mode = m.kind | 0o600
	return m.NewInode(ctx, &fs.Inode{}, fs.StableAttr{Mode: m.kind}), 0
}

func (*maker) Unlink(context.Context, string) syscall.Errno { return 0 }

func (*maker) Rename(context.Context, string, fs.InodeEmbedder, string, uint32) syscall.Errno {
	return 0
}

// madeUp is the listing of a maker.
type madeUp struct{ *maker }

func (*madeUp) HasNext() bool { return true }

func (m *madeUp) Next() (fuse.DirEntry, syscall.Errno) {
	shown := m.shown.Add(1)
	if shown > tooMany {
		m.end()
	}
	return fuse.DirEntry{Name: fmt.Sprint("made-up-", shown), Mode: m.kind}, 0
}

// Seekdir starts anywhere with another name.
func (*madeUp) Seekdir(context.Context, uint64) syscall.Errno { return 0 }

func (*madeUp) Close() {}

// endless mounts a directory with a maker named tree. The context ends once the maker has shown too many names.
func endless(t *testing.T, kind uint32) (ctx context.Context, top *os.File) {
	t.Helper()
	testfs.NeedRoot(t)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	root, dir := &fs.Inode{}, t.TempDir()
	server, err := fs.Mount(dir, root, &fs.Options{
		MountOptions: fuse.MountOptions{DirectMountStrict: true, FsName: "endless"},
		OnAdd: func(ctx context.Context) {
			m := &maker{kind: kind, shown: new(atomic.Int64), end: cancel}
			root.AddChild("tree", root.NewPersistentInode(ctx, m, fs.StableAttr{Mode: fuse.S_IFDIR}), true)
		}})
	must(t, err)
	t.Cleanup(func() { must(t, server.Unmount()) })
	top, err = os.Open(dir)
	must(t, err)
	t.Cleanup(func() { must(t, top.Close()) })
	return ctx, top
}

// TestRemoveEnds removes entries that a server makes up faster than they can be removed.
func TestRemoveEnds(t *testing.T) {
	for name, kind := range map[string]uint32{"nothing": 0, "files": fuse.S_IFREG, "directories": fuse.S_IFDIR} {
		t.Run(name, func(t *testing.T) {
			ctx, top := endless(t, kind)
			if err := removeIn(ctx, top, "tree", tooMany/100); !errors.Is(err, ErrEndless) {
				t.Errorf("got %v, want %v", err, ErrEndless)
			}
		})
	}
}

// TestMeasureEnds measures names without entries.
func TestMeasureEnds(t *testing.T) {
	ctx, top := endless(t, 0)
	src, err := openDir(top, "tree")
	must(t, err)
	defer src.Close()
	err = each(ctx, src, tooMany/100, func(n *node) error { n.close(); return nil })
	if !errors.Is(err, ErrEndless) {
		t.Errorf("got %v, want %v", err, ErrEndless)
	}
}

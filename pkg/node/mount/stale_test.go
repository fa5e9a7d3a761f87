package mount

import (
	"context"
	"io"
	"os"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// removed is a directory of a server that says, once told to, that it no longer has it.
type removed struct {
	fs.Inode
	gone atomic.Bool
}

func (r *removed) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	if r.gone.Load() {
		return syscall.ESTALE
	}
	out.Mode = fuse.S_IFDIR | 0o755
	return fs.OK
}

func (r *removed) OnAdd(ctx context.Context) {
	file := &fs.MemRegularFile{Data: []byte("data")}
	r.AddChild("file", r.NewPersistentInode(ctx, file, fs.StableAttr{}), false)
}

// TestRemovedOnItsServer unmounts a directory that its server no longer has, and that a process has open. Other mounts
// of the same filesystem go on: the volumes of an NFS share have one.
func TestRemovedOnItsServer(t *testing.T) {
	needRoot(t)
	root := &removed{}
	gone, other := t.TempDir(), t.TempDir()
	server, err := fs.Mount(gone, root, &fs.Options{MountOptions: fuse.MountOptions{DirectMountStrict: true}})
	must(t, err)
	must(t, unix.Mount(gone, other, "", unix.MS_BIND, ""))
	held, err := os.Open(gone + "/file")
	must(t, err)
	kept, err := os.Open(other + "/file")
	must(t, err)
	root.gone.Store(true)
	must(t, Unmount(t.Context(), gone))
	if look(t, gone).Mounted {
		t.Error("it is mounted still")
	}
	if text, err := io.ReadAll(kept); err != nil || string(text) != "data" {
		t.Errorf("the other mount reads %q, %v", text, err)
	}
	must(t, held.Close(), kept.Close(), unix.Unmount(other, unix.MNT_DETACH))
	server.Wait()
}

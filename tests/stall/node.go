package stall

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"sync"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// Request is a kind of request that the kernel sends.
type Request string

// The requests at which a server can stop.
const (
	Lookup    Request = "LOOKUP"
	Attribute Request = "GETATTR"
	Usage     Request = "STATFS"
	Open      Request = "OPEN"
	Read      Request = "READ"
	Write     Request = "WRITE"
	Sync      Request = "FSYNC"
	SyncDir   Request = "FSYNCDIR"
	List      Request = "OPENDIR" // before any name is read
	Change    Request = "CHANGE"  // of the names in a directory, of any kind
)

// The requests that are executed and answered with an error.
const (
	moved  Request = "MOVED"
	synced Request = "SYNCED" // a directory
)

// counted asks for the number of requests. It is not counted itself.
const counted Request = "COUNTED"

// trap counts requests up to one at which this process stops.
type trap struct {
	mu      sync.Mutex
	request Request
	left    int
	all     int // requests of any kind since the start
}

func (t *trap) requests() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.all
}

// set makes the process stop at a request, and confirms that before the request can come, because a stopped process
// confirms nothing.
func (t *trap) set(request Request, number int, answers io.Writer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.request, t.left = request, number
	fmt.Fprintln(answers, "set")
}

// pass counts a request, and stops the process before it answers the selected one. Others wait meanwhile.
func (t *trap) pass(request Request) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all++
	if t.isAt(request) {
		Freeze()
	}
}

// fails counts a request that is executed, and reports whether it must be answered with an error.
func (t *trap) fails(request Request) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.isAt(request)
}

func (t *trap) isAt(request Request) bool {
	if t.request != request || t.left <= 0 {
		return false
	}
	t.left--
	return t.left == 0
}

// Freeze stops this process before it returns, until another process lets it continue. A signal to a process is taken
// by any of its threads, while the others continue for a moment: only a signal to the thread itself has arrived when
// the call ends.
func Freeze() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_ = unix.Tgkill(unix.Getpid(), unix.Gettid(), unix.SIGSTOP) // A process may always signal itself.
}

// node is a file or directory whose requests pass the trap.
type node struct {
	fs.LoopbackNode
	trap *trap
}

// WrapChild makes the entries below pass the trap too.
func (n *node) WrapChild(context.Context, fs.InodeEmbedder) fs.InodeEmbedder {
	return &node{fs.LoopbackNode{RootData: n.RootData}, n.trap}
}

func (n *node) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	n.trap.pass(Lookup)
	return n.LoopbackNode.Lookup(ctx, name, out)
}

func (n *node) Getattr(ctx context.Context, f fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	n.trap.pass(Attribute)
	return n.LoopbackNode.Getattr(ctx, f, out)
}

func (n *node) Statfs(ctx context.Context, out *fuse.StatfsOut) syscall.Errno {
	n.trap.pass(Usage)
	return n.LoopbackNode.Statfs(ctx, out)
}

func (n *node) Open(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	n.trap.pass(Open)
	f, _, errno := n.LoopbackNode.Open(ctx, flags)
	return f, fuse.FOPEN_DIRECT_IO, errno
}

// names is an open directory whose syncs pass the trap.
type names struct {
	directory
	trap *trap
}

// directory is an open directory as it is served.
type directory interface {
	fs.FileReaddirenter
	fs.FileSeekdirer
	fs.FileReleasedirer
	fs.FileFsyncdirer
}

func (n *names) Fsyncdir(ctx context.Context, flags uint32) syscall.Errno {
	n.trap.pass(SyncDir)
	errno := n.directory.Fsyncdir(ctx, flags)
	if n.trap.fails(synced) {
		return syscall.EIO
	}
	return errno
}

func (n *node) OpendirHandle(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	n.trap.pass(List)
	f, _, errno := n.LoopbackNode.OpendirHandle(ctx, flags)
	if d, ok := f.(directory); ok {
		f = &names{d, n.trap}
	}
	return f, 0, errno
}

func (n *node) Read(ctx context.Context, f fs.FileHandle, buffer []byte,
	offset int64) (fuse.ReadResult, syscall.Errno) {
	n.trap.pass(Read)
	if r, ok := f.(fs.FileReader); ok {
		return r.Read(ctx, buffer, offset)
	}
	return nil, syscall.EBADF
}

func (n *node) Write(ctx context.Context, f fs.FileHandle, data []byte, offset int64) (uint32, syscall.Errno) {
	n.trap.pass(Write)
	if w, ok := f.(fs.FileWriter); ok {
		return w.Write(ctx, data, offset)
	}
	return 0, syscall.EBADF
}

func (n *node) Fsync(ctx context.Context, f fs.FileHandle, flags uint32) syscall.Errno {
	n.trap.pass(Sync)
	if s, ok := f.(fs.FileFsyncer); ok {
		return s.Fsync(ctx, flags)
	}
	return 0
}

func (n *node) Create(
	ctx context.Context, name string, flags, mode uint32, out *fuse.EntryOut,
) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	n.trap.pass(Change)
	return n.LoopbackNode.Create(ctx, name, flags, mode, out)
}

func (n *node) Mkdir(ctx context.Context, name string, mode uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	n.trap.pass(Change)
	return n.LoopbackNode.Mkdir(ctx, name, mode, out)
}

func (n *node) Symlink(ctx context.Context, target, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	n.trap.pass(Change)
	return n.LoopbackNode.Symlink(ctx, target, name, out)
}

func (n *node) Link(ctx context.Context, to fs.InodeEmbedder, name string,
	out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	n.trap.pass(Change)
	return n.LoopbackNode.Link(ctx, to, name, out)
}

func (n *node) Unlink(ctx context.Context, name string) syscall.Errno {
	n.trap.pass(Change)
	return n.LoopbackNode.Unlink(ctx, name)
}

func (n *node) Rmdir(ctx context.Context, name string) syscall.Errno {
	n.trap.pass(Change)
	return n.LoopbackNode.Rmdir(ctx, name)
}

func (n *node) Rename(ctx context.Context, name string, to fs.InodeEmbedder, newName string,
	flags uint32) syscall.Errno {
	n.trap.pass(Change)
	errno := n.LoopbackNode.Rename(ctx, name, to, newName, flags)
	if n.trap.fails(moved) {
		return syscall.EIO
	}
	return errno
}

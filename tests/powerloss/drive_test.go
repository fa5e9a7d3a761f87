package powerloss

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// drive is a disk in memory, served as a file. The kernel's loop driver converts each request of the block layer to one
// of the file: a write to WRITE, a flush to FSYNC (vfs_fsync), and a discard or a write of zeros to FALLOCATE. It does
// not support forced unit access; the block layer sends a flush after the write instead.
type drive struct {
	fs.Inode

	mu      sync.Mutex
	pages   image
	journal *journal // nil if requests are not recorded
}

// load replaces the content of the drive.
func (d *drive) load(m image, j *journal) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pages, d.journal = m, j
}

// change applies an entry, in the single order of all requests.
func (d *drive) change(e entry) syscall.Errno {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e.offset < 0 || e.offset+e.length > int64(len(d.pages))*pageSize {
		return syscall.ENOSPC
	}
	e.applyTo(d.pages)
	if d.journal != nil {
		d.journal.add(e)
	}
	return 0
}

// Getattr returns the drive's size.
func (d *drive) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	d.mu.Lock()
	defer d.mu.Unlock()
	out.Mode, out.Size = fuse.S_IFREG|0o600, uint64(len(d.pages))*pageSize
	return 0
}

// Setattr changes nothing: times are irrelevant, and the size is fixed.
func (d *drive) Setattr(ctx context.Context, f fs.FileHandle, _ *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	return d.Getattr(ctx, f, out)
}

// Open disables the kernel's cache of the drive, so that each request arrives, and in order.
func (d *drive) Open(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) {
	return nil, fuse.FOPEN_DIRECT_IO, 0
}

// Read reads.
func (d *drive) Read(_ context.Context, _ fs.FileHandle, buffer []byte, offset int64) (fuse.ReadResult, syscall.Errno) {
	d.mu.Lock()
	defer d.mu.Unlock()
	room := max(0, int64(len(d.pages))*pageSize-offset)
	buffer = buffer[:min(int64(len(buffer)), room)]
	d.pages.read(offset, buffer)
	return fuse.ReadResultData(buffer), 0
}

// Write writes.
func (d *drive) Write(_ context.Context, _ fs.FileHandle, data []byte, offset int64) (uint32, syscall.Errno) {
	own := append([]byte(nil), data...) // The server reuses the buffer.
	errno := d.change(entry{kind: written, offset: offset, length: int64(len(own)), data: own})
	return uint32(len(own)), errno
}

// Allocate discards or zeroes.
func (d *drive) Allocate(_ context.Context, _ fs.FileHandle, offset, length uint64, mode uint32) syscall.Errno {
	if mode&(unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_ZERO_RANGE) == 0 {
		return syscall.EOPNOTSUPP
	}
	return d.change(entry{kind: zeroed, offset: int64(offset), length: int64(length)})
}

// Fsync is the drive's flush.
func (d *drive) Fsync(context.Context, fs.FileHandle, uint32) syscall.Errno {
	return d.change(entry{kind: flushed})
}

// Flush is close(2) of the file, which has no meaning for a drive.
func (d *drive) Flush(context.Context, fs.FileHandle) syscall.Errno { return 0 }

// shelf is the directory that contains the drives as files.
type shelf struct {
	fs.Inode
	drives []*drive
}

// OnAdd adds the drives.
func (s *shelf) OnAdd(ctx context.Context) {
	for i, d := range s.drives {
		s.AddChild(driveName(i), s.NewPersistentInode(ctx, d, fs.StableAttr{Mode: fuse.S_IFREG}), true)
	}
}

func driveName(i int) string { return fmt.Sprintf("disk-%d.img", i) }

// serveDrives serves the given number of drives until the end of the test.
func serveDrives(t *testing.T, count int) (drives []*drive, paths []string) {
	t.Helper()
	g, dir := newGuard(t), t.TempDir()
	for i := range count {
		drives = append(drives, &drive{})
		paths = append(paths, filepath.Join(dir, driveName(i)))
	}
	server, err := fs.Mount(dir, &shelf{drives: drives}, &fs.Options{MountOptions: fuse.MountOptions{
		DirectMountStrict: true, MaxWrite: 1 << 20, DisableXAttrs: true, FsName: prefix, Name: prefix,
	}})
	must(t, err)
	t.Cleanup(func() {
		// A process that inspects all loop devices keeps one, and so its drive, open for a moment after the detachment.
		if err := retry(server.Unmount, unix.EBUSY); err != nil {
			t.Errorf("cleaning up: the drives are still in use: %v", err)
		}
	})
	must(t, g.watch(dir))
	return drives, paths
}

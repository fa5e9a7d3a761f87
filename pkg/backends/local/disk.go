package local

import (
	"errors"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/background"
)

// disk is a filesystem with its pools, which share its space.
type disk struct {
	disks *disks // all disks, with what they share
	id    diskID

	deciding  sync.Mutex // held while deciding whether there is room, however long the filesystem takes to answer
	measuring *background.Works[struct{}]

	mu    sync.Mutex // never held during I/O
	pools []*pool
}

// disks are the filesystems that have pools.
type disks struct {
	stock   *stock   // the contents of all their pools
	waiting *waiting // for filesystems that may not answer
	log     *slog.Logger

	mu    sync.Mutex
	known map[diskID]*disk
	// unserved is how much each pool that is not served may still take of its filesystem, by pool.
	unserved map[string]owing
}

func newDisks(s *stock, w *waiting, log *slog.Logger) *disks {
	return &disks{stock: s, waiting: w, log: log, known: map[diskID]*disk{}, unserved: map[string]owing{}}
}

// diskID identifies a filesystem. The subvolumes of a btrfs have different device numbers but the same UUID.
type diskID struct {
	dev  uint64
	uuid [16]byte
}

// join makes the pool share the space of its filesystem with the other pools on it, until it leaves.
func (ds *disks) join(p *pool) error {
	id, err := diskOf(p.path)
	if err != nil {
		return err
	}
	ds.mu.Lock()
	defer ds.mu.Unlock()
	for _, d := range ds.known { // It may have joined before, on another filesystem.
		d.leave(p)
	}
	d := ds.known[id]
	if d == nil {
		d = &disk{disks: ds, id: id, measuring: background.New[struct{}](mostMeasurements)}
		ds.known[id] = d
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pools = append(d.pools, p)
	p.ledger.disk = d
	return nil
}

func (ds *disks) all() []*disk {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	return slices.Collect(maps.Values(ds.known))
}

// leave removes the pool from its filesystem, if it has joined one.
func (d *disk) leave(p *pool) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pools = slices.DeleteFunc(d.pools, func(other *pool) bool { return other == p })
}

func (d *disk) all() []*pool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.pools)
}

// promised is what pools have promised together, and what is not served or cannot be used may still take.
func (d *disk) promised(pools []*pool) (sum int64) {
	for _, p := range pools {
		sum += p.ledger.sum() + d.disks.stock.owesAway(p)
	}
	return sum + d.disks.unservedOn(d.id)
}

func diskOf(path string) (diskID, error) {
	var stat unix.Statfs_t
	dir, err := os.Open(path)
	if err != nil {
		return diskID{}, err
	}
	defer func() { _ = dir.Close() }() // It was only read.
	info, err := dir.Stat()
	if err != nil {
		return diskID{}, err
	}
	if err := unix.Fstatfs(int(dir.Fd()), &stat); err != nil {
		return diskID{}, &os.PathError{Op: "fstatfs", Path: path, Err: err}
	}
	if stat.Type == unix.BTRFS_SUPER_MAGIC {
		return btrfsOf(dir)
	}
	sys, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return diskID{}, errors.ErrUnsupported
	}
	return diskID{dev: sys.Dev}, nil
}

// btrfsInfo is struct btrfs_ioctl_fs_info_args of linux/btrfs.h, reduced to the fields in use.
type btrfsInfo struct {
	_    [16]byte
	uuid [16]byte
	_    [992]byte
}

func btrfsOf(dir *os.File) (diskID, error) {
	const fsInfo = 0x8400941f // BTRFS_IOC_FS_INFO: _IOR(0x94, 31, struct btrfs_ioctl_fs_info_args)
	var info btrfsInfo
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, dir.Fd(), fsInfo, uintptr(unsafe.Pointer(&info))); errno != 0 {
		return diskID{}, backends.Errorf(backends.Unavailable, "the UUID of the btrfs at %s could not be read: %w",
			dir.Name(), errno)
	}
	return diskID{uuid: info.uuid}, nil
}

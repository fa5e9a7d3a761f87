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

// disk is a filesystem with the pools that are on it, which share its space.
type disk struct {
	disks *disks // what this one must know of all of them
	id    diskID

	deciding  sync.Mutex // kept while it is decided whether there is room, however long the filesystem takes to answer
	measuring *background.Works[struct{}]

	mu    sync.Mutex // never kept for I/O
	pools []*pool
}

// disks are the filesystems on which there are pools.
type disks struct {
	stock   *stock   // what is in all their pools
	waiting *waiting // for what may not answer
	log     *slog.Logger

	mu    sync.Mutex
	known map[diskID]*disk
	// unserved is, by pool, what those may still take of their filesystems that are not served.
	unserved map[string]owing
}

func newDisks(s *stock, w *waiting, log *slog.Logger) *disks {
	return &disks{stock: s, waiting: w, log: log, known: map[diskID]*disk{}, unserved: map[string]owing{}}
}

// diskID tells filesystems apart. The subvolumes of a btrfs have device numbers of their own, and one UUID.
type diskID struct {
	dev  uint64
	uuid [16]byte
}

// join has the pool share the space of its filesystem with the other pools on it, until it leaves.
func (ds *disks) join(p *pool) error {
	id, err := diskOf(p.path)
	if err != nil {
		return err
	}
	ds.mu.Lock()
	defer ds.mu.Unlock()
	for _, d := range ds.known { // It may have joined before, and its filesystem may be another one since.
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

// all are the filesystems.
func (ds *disks) all() []*disk {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	return slices.Collect(maps.Values(ds.known))
}

// leave takes the pool off its filesystem, if it has joined.
func (d *disk) leave(p *pool) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pools = slices.DeleteFunc(d.pools, func(other *pool) bool { return other == p })
}

// all are the pools.
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
	defer func() { _ = dir.Close() }() // It is only looked at.
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

// btrfsInfo is struct btrfs_ioctl_fs_info_args of linux/btrfs.h, as far as it is needed.
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

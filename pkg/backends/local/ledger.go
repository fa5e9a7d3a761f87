package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/deadline"
	"github.com/stowage-csi/stowage/pkg/rawfile"
)

// ledger tracks the sizes that a pool has promised, so that two concurrent callers do not both get the last room. A
// deleted item counts until it is removed from disk.
type ledger struct {
	pool       string
	path       string
	self       os.FileInfo // the directory as of when the pool was opened
	capacity   int64       // as configured; 0 for no limit of its own
	overcommit float64     // how many bytes may be promised for each byte that exists
	reserve    reserve     // how much of the filesystem is kept free
	disk       *disk       // the filesystem, shared with other pools

	mu       sync.Mutex
	promised int64
}

func newLedger(p *pool) *ledger {
	s := p.settings
	return &ledger{pool: p.name, path: p.path, self: p.self, capacity: s.capacity, overcommit: s.overcommit,
		reserve: s.reserve}
}

// room is how much more a pool can promise, with the reason why it is not more.
type room struct {
	available int64
	because   func() string
}

// take promises size bytes. One decision runs at a time for all pools of a filesystem. It looks at each volume only if
// the free space is less than all that may be written. Kinds: Exhausted; Unavailable when the filesystem does not
// answer.
func (l *ledger) take(ctx context.Context, size int64) error {
	_, err := decide(ctx, l, func() (struct{}, error) { return struct{}{}, l.takeNow(size) },
		func(struct{}) { l.give(size) })
	return err
}

func (l *ledger) takeNow(size int64) error {
	r, err := l.look(nothingHeld)
	if err == nil && size > r.available {
		r, err = l.look(l.disk.disks.stock.held)
	}
	if err != nil {
		return err
	}
	if size > r.available {
		return backends.Errorf(backends.Exhausted, "pool %q has no room for %d bytes: %d are available, because %s",
			l.pool, size, r.available, r.because())
	}
	l.add(size)
	return nil
}

// room returns how much more can be promised. Kinds: Unavailable when the filesystem does not answer.
func (l *ledger) room(ctx context.Context) (room, error) {
	return decide(ctx, l, func() (room, error) { return l.look(l.disk.disks.stock.held) }, nil)
}

// freeNow returns how many bytes are free. Kinds: Unavailable when the filesystem does not answer.
func (l *ledger) freeNow(ctx context.Context) (int64, error) { return decide(ctx, l, l.free, nil) }

// decide runs work, one at a time for each filesystem. It gives up on a filesystem that does not answer, and undoes a
// decision that completes later. Kinds: the work's; Unavailable.
func decide[T any](ctx context.Context, l *ledger, work func() (T, error), undo func(T)) (T, error) {
	w := l.disk.disks.waiting
	ctx, cancel := context.WithTimeout(w.calls.With(ctx), w.limits.Look)
	defer cancel()
	return deadline.Do(ctx, deadline.Call{Name: "asking for the room in " + l.path}, func(context.Context) (T, error) {
		l.disk.deciding.Lock()
		defer l.disk.deciding.Unlock()
		return work()
	}, undo)
}

// look compares the promises with the free space and what volumes already hold of their promises. Its order of reading
// is such that concurrent changes can only make the room smaller than it is. No other decision may run meanwhile.
func (l *ledger) look(holds func([]*pool) holding) (room, error) {
	pools := l.disk.all()
	for _, p := range pools {
		if !p.served() {
			return room{}, backends.Errorf(backends.Unavailable, "pool %q is still being opened, so that it is not known "+
				"what is promised on the filesystem of %s: ask again", p.name, l.path)
		}
	}
	own, promised := l.sum(), l.disk.promised(pools)
	before, size, err := l.space()
	if err != nil {
		return room{}, err
	}
	held := holds(pools)
	after, err := l.free()
	if err != nil {
		return room{}, err
	}
	free, kept := min(before, after, held.free), l.reserve.of(size)
	there := usable(free) + held.bytes - l.disk.disks.stock.owed(pools) - kept
	r := room{available: int64(l.overcommit*float64(there)) - promised, because: func() string {
		return fmt.Sprintf("the filesystem of %s has %d bytes free, volumes hold %d bytes of the %d that are promised "+
			"there, %d are kept free, and overcommit is %v",
			l.path, free, held.bytes, promised, kept, l.overcommit)
	}}
	if l.capacity != 0 && l.capacity-own < r.available {
		r = room{l.capacity - own, func() string {
			return fmt.Sprintf("the pool's capacity is %d bytes, and %d are promised", l.capacity, own)
		}}
	}
	r.available = max(0, r.available)
	return r, nil
}

// The part of the free space that is not promised. The filesystem's metadata and the driver's record of a volume take
// room, too.
const (
	keptBack      = 1 << 20
	keptBackShare = 128
)

func usable(free int64) int64 { return max(0, free-free/keptBackShare-keptBack) }

// add promises bytes that are already taken, whether there is room or not.
func (l *ledger) add(size int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.promised += size
}

// give takes a promise back.
func (l *ledger) give(size int64) { l.add(-size) }

func (l *ledger) sum() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.promised
}

// free asks the filesystem for its free space. If the filesystem is not mounted, the path is on another one, whose
// space is not the pool's. Kinds: Unavailable.
func (l *ledger) free() (int64, error) {
	free, _, err := l.space()
	return free, err
}

// space asks the filesystem for its free space and its size, both as the kubelet counts them. Kinds: as of free.
func (l *ledger) space() (free, size int64, err error) {
	dir, err := rawfile.Open(l.path, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return 0, 0, l.silent(err)
	}
	defer func() { _ = dir.Close() }() // It was only read.
	info, err := dir.Stat()
	if err != nil {
		return 0, 0, l.silent(err)
	}
	if !os.SameFile(info, l.self) {
		return 0, 0, l.silent(errors.New("it is not the directory that it was at start: is its filesystem mounted?"))
	}
	var stat unix.Statfs_t
	if err := unix.Fstatfs(int(dir.Fd()), &stat); err != nil {
		return 0, 0, l.silent(err)
	}
	return int64(stat.Bavail) * stat.Frsize, int64(stat.Blocks) * stat.Frsize, nil
}

func (l *ledger) silent(err error) error {
	return backends.Errorf(backends.Unavailable, "the space in %s could not be read: %w", l.path, err)
}

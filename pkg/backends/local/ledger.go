package local

import (
	"sync"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// ledger keeps account of the sizes that a pool has promised, so that two who come at once do not both get
// the last room. What is deleted stays on it until it is removed from disk.
type ledger struct {
	path     string
	capacity int64 // as configured; 0 for the filesystem's size

	mu       sync.Mutex
	promised int64
}

// take promises so many bytes, and says who asked when there is no room. Kinds: Exhausted.
func (l *ledger) take(size int64, pool string) error {
	capacity, free, err := l.space()
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if available := max(0, min(capacity-l.promised, free)); size > available {
		return backends.Errorf(backends.Exhausted, "pool %q has no room for %d bytes: %d are available", pool, size, available)
	}
	l.promised += size
	return nil
}

// add promises what is there already, room or not.
func (l *ledger) add(size int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.promised += size
}

// give takes a promise back.
func (l *ledger) give(size int64) { l.add(-size) }

// available is how much more can be promised, in bytes.
func (l *ledger) available() (int64, error) {
	capacity, free, err := l.space()
	if err != nil {
		return 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(0, min(capacity-l.promised, free)), nil
}

// space asks the filesystem for its size, where no other capacity is configured, and for its free space.
func (l *ledger) space() (capacity, free int64, err error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(l.path, &stat); err != nil {
		return 0, 0, backends.Errorf(backends.Unavailable, "the space in %s could not be read: %w", l.path, err)
	}
	capacity = l.capacity
	if capacity == 0 {
		capacity = int64(stat.Blocks) * stat.Frsize
	}
	return capacity, int64(stat.Bavail) * stat.Frsize, nil
}

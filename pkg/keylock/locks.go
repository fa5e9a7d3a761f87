package keylock

import (
	"slices"
	"sync"
)

// keepBuckets is the number of keys up to which the emptied map is kept for reuse. A Go map never shrinks, so a map
// that a burst has enlarged is dropped. An ordinary map is not rebuilt for each call.
const keepBuckets = 64

// Locks is a set of held keys. The zero value is ready to use; it must not be copied after first use.
type Locks struct {
	mu   sync.Mutex
	held map[string]struct{}
	peak int // the most keys that held has had since it was created
}

// New returns a Locks that holds nothing.
func New() *Locks { return &Locks{} }

// TryLock takes all keys or none, and never waits. If one of them is held, it returns ok false, a nil unlock, and in
// busy the first such key in the order of the arguments. A duplicate key counts once. It always succeeds without keys.
//
// The caller calls unlock when it is done, from any goroutine. Further calls do nothing, even if another caller has
// taken the keys since.
func (l *Locks) TryLock(keys ...string) (unlock func(), ok bool, busy string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, key := range keys {
		if _, taken := l.held[key]; taken {
			return nil, false, key
		}
	}
	keys = slices.Clone(keys)
	l.take(keys)
	var once sync.Once
	return func() { once.Do(func() { l.release(keys) }) }, true, ""
}

// take adds keys that are known to be free; l.mu is held.
func (l *Locks) take(keys []string) {
	if l.held == nil {
		l.held = make(map[string]struct{}, len(keys))
	}
	for _, key := range keys {
		l.held[key] = struct{}{}
	}
	l.peak = max(l.peak, len(l.held))
}

func (l *Locks) release(keys []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, key := range keys {
		delete(l.held, key)
	}
	if len(l.held) == 0 && l.peak > keepBuckets {
		l.held, l.peak = nil, 0
	}
}

package share

import (
	"slices"
	"sync"
)

// nameLocks are the locks of a share's files, one for each name that somebody uses. No two names share one: a change
// is a request to a server, and one that hangs must hold up nobody else. The zero value is ready.
type nameLocks struct {
	mu  sync.Mutex
	all map[string]*nameLock
}

// nameLock is the lock of a name, for as long as somebody holds it or waits for it.
type nameLock struct {
	sync.RWMutex
	users int
}

// use is the lock of a name, until done is called.
func (l *nameLocks) use(path string) (lock *nameLock, done func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil {
		l.all = map[string]*nameLock{}
	}
	lock = l.all[path]
	if lock == nil {
		lock = &nameLock{}
		l.all[path] = lock
	}
	lock.users++
	return lock, func() { l.leave(path, lock) }
}

func (l *nameLocks) leave(path string, lock *nameLock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if lock.users--; lock.users == 0 {
		delete(l.all, path)
	}
}

// read holds the lock of a name while the file is open, or is looked at.
func (l *nameLocks) read(do func() error, path string) error {
	lock, done := l.use(path)
	defer done()
	lock.RLock()
	defer lock.RUnlock()
	return do()
}

// change holds the locks of names while they are changed. All take them in one order.
func (l *nameLocks) change(do func() error, paths ...string) error {
	slices.Sort(paths)
	for _, path := range slices.Compact(paths) {
		lock, done := l.use(path)
		defer done()
		lock.Lock()
		defer lock.Unlock()
	}
	return do()
}

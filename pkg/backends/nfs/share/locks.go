package share

import (
	"slices"
	"sync"
)

// nameLocks are the locks of a share's files, one for each name in use. No two names share one: a change is a request
// to a server, and a hanging one must not delay others. The zero value is ready.
type nameLocks struct {
	mu  sync.Mutex
	all map[string]*nameLock
}

// nameLock is the lock of a name, while it is held or waited for.
type nameLock struct {
	sync.RWMutex
	users int
}

// use returns the lock of a name, until done is called.
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

// read holds the lock of a name while the file is open, or its attributes are read.
func (l *nameLocks) read(do func() error, path string) error {
	lock, done := l.use(path)
	defer done()
	lock.RLock()
	defer lock.RUnlock()
	return do()
}

// change holds the locks of names while they are changed. The order of locking is always the same.
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

package share

import (
	"hash/fnv"
	"slices"
	"sync"
)

// nameLocks are the locks of a share's files, by name. Few names share one, so that changes of different files do not
// wait for each other: each is a request to a server that may first bring it to its disk.
type nameLocks [256]sync.RWMutex

// of is the lock of a name.
func (l *nameLocks) of(path string) *sync.RWMutex { return &l[l.number(path)] }

func (l *nameLocks) number(path string) int {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(path)) // It never fails.
	return int(hash.Sum32() % uint32(len(l)))
}

// change holds the locks of names while they are changed. All take them in one order.
func (l *nameLocks) change(do func() error, paths ...string) error {
	numbers := make([]int, 0, len(paths))
	for _, path := range paths {
		numbers = append(numbers, l.number(path))
	}
	slices.Sort(numbers)
	for _, number := range slices.Compact(numbers) {
		l[number].Lock()
		defer l[number].Unlock()
	}
	return do()
}

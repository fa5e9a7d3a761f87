package nfs

import (
	"context"
	"sync"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
	"github.com/stowage-csi/stowage/pkg/safepath"
	"github.com/stowage-csi/stowage/pkg/tree"
)

const (
	// usageAge is how old a measured usage may be.
	usageAge = 15 * time.Minute
	// usageKept is how many usages are remembered.
	usageKept = 10_000
)

// usages are how much the volumes' files take. To know it every file has to be looked at, so it is measured in the
// background, one volume at a time, when somebody asks about the volume's health; the answer is that of the last time.
type usages struct {
	life  context.Context // of the work in the background, which is no request's
	stop  context.CancelFunc
	group sync.WaitGroup
	turn  chan struct{}

	mu    sync.Mutex
	known map[string]usage // by the record's key
}

type usage struct {
	bytes    int64
	measured bool // else it is being measured for the first time
	at       time.Time
}

func newUsages() *usages {
	life, stop := context.WithCancel(context.Background())
	return &usages{life: life, stop: stop, turn: make(chan struct{}, 1), known: map[string]usage{}}
}

// of returns what was measured last, and has it measured again when that is old.
func (u *usages) of(s *share.Share, r *record) (bytes int64, known bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	last := u.known[r.key()]
	if time.Since(last.at) > usageAge && u.life.Err() == nil {
		if len(u.known) > usageKept {
			clear(u.known)
		}
		u.known[r.key()] = usage{last.bytes, last.measured, time.Now()}
		u.group.Go(func() { u.measure(s, r.key(), r.SubDir) })
	}
	return last.bytes, last.measured
}

func (u *usages) measure(asked *share.Share, key, dir string) {
	select {
	case u.turn <- struct{}{}:
		defer func() { <-u.turn }()
	case <-u.life.Done():
		return
	}
	s, release, err := asked.Hold(u.life)
	if err != nil {
		return // The next one who asks tries again.
	}
	defer release()
	bytes, err := u.count(s, dir)
	if err != nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.known[key] = usage{bytes, true, time.Now()}
}

// count adds up the blocks of all files that can be seen: a pod may have directories that keep the controller out, whom
// a server takes for nobody. Hard links count as often as they are. The walk follows no link, and keeps nothing of what
// it has seen.
func (u *usages) count(s *share.Share, dir string) (bytes int64, err error) {
	root, err := safepath.OpenBeneath(s.Dir(), dir)
	if err != nil {
		return 0, err
	}
	defer closeQuietly(root)
	return tree.Measure(u.life, root)
}

// close stops the measuring.
func (u *usages) close() {
	u.stop()
	waitFor(&u.group, closeGrace)
}

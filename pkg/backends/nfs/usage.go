package nfs

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
	"github.com/stowage-csi/stowage/pkg/background"
	"github.com/stowage-csi/stowage/pkg/safepath"
	"github.com/stowage-csi/stowage/pkg/tree"
)

const (
	// usageAge is the maximum age of a measured usage.
	usageAge = 15 * time.Minute
	// usageKept is the number of remembered usages.
	usageKept = 10_000
	// measureTime is the time limit for measuring one volume. If a volume is too large for that, or a hostile server makes
	// it endless, the bytes that were counted by then are its usage. It is reported only if that is more than the volume's
	// size.
	measureTime = 10 * time.Minute
	// mostWaiting is the number of volumes of a share that may be measured or wait for it. Others are measured after a
	// later query.
	mostWaiting = 1000
)

// usages are the sizes of the volumes' files. Measuring reads the attributes of every file. So it is done in the
// background, one volume of a share at a time, when the volume's health is queried; the answer is the previous result.
// No share waits for another, whose server may be slow on purpose.
type usages struct {
	life  context.Context // of the work in the background, independent of requests
	stop  context.CancelFunc
	group background.Group
	// look is lookAt, except in tests. With an error it returns the bytes that were counted before.
	look func(ctx context.Context, w wish) (bytes int64, err error)

	mu      sync.Mutex
	known   map[string]usage  // by the record's key
	waiting map[string][]wish // by the share; the first is being measured
}

type usage struct {
	bytes    int64
	measured bool // false while it is measured for the first time
	at       time.Time
}

// wish is a request to measure a volume.
type wish struct {
	share    *share.Share
	key, dir string
}

func newUsages() *usages {
	life, stop := context.WithCancel(context.Background())
	return &usages{life: life, stop: stop, look: lookAt, known: map[string]usage{}, waiting: map[string][]wish{}}
}

// of returns the last result, and has the volume measured again if that is old.
func (u *usages) of(s *share.Share, r *record) (bytes int64, known bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	last := u.known[r.key()]
	if time.Since(last.at) > usageAge && u.life.Err() == nil && u.want(wish{s, r.key(), r.SubDir}) {
		if len(u.known) > usageKept {
			clear(u.known)
		}
		u.known[r.key()] = usage{last.bytes, last.measured, time.Now()}
	}
	return last.bytes, last.measured
}

// want queues a volume for measuring, and reports whether there is room for that. A second wish for a waiting volume is
// the same wish. The caller holds the mutex.
func (u *usages) want(w wish) bool {
	on := w.share.Address.String()
	queue := u.waiting[on]
	if slices.ContainsFunc(queue, func(other wish) bool { return other.key == w.key }) {
		return true
	}
	if len(queue) >= mostWaiting {
		return false
	}
	u.waiting[on] = append(queue, w)
	if len(queue) == 0 {
		u.group.Go("measuring what volumes take on the share "+on, func() { u.work(on) })
	}
	return true
}

// work measures the waiting volumes of a share, one after the other, and ends when none is left.
func (u *usages) work(on string) {
	for next, ok := u.first(on); ok; next, ok = u.done(on) {
		u.measure(next)
	}
}

func (u *usages) first(on string) (wish, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.waiting[on][0], u.life.Err() == nil
}

// done removes the measured volume from the queue, and returns the next one.
func (u *usages) done(on string) (wish, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	left := u.waiting[on][1:]
	if len(left) == 0 {
		delete(u.waiting, on)
		return wish{}, false
	}
	u.waiting[on] = left
	return left[0], u.life.Err() == nil
}

// measure notes the usage of a volume. After a failure, the first query after usageAge has it measured again.
func (u *usages) measure(w wish) {
	ctx, cancel := context.WithTimeout(u.life, measureTime)
	defer cancel()
	bytes, err := u.look(ctx, w)
	if err != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.known[w.key] = usage{bytes, true, time.Now()}
}

// lookAt adds up the blocks of all visible files. A pod may have directories that deny access to a controller whose
// root the server maps to nobody. The walk follows no link, and keeps nothing in memory.
func lookAt(ctx context.Context, w wish) (bytes int64, err error) {
	s, release, err := w.share.Hold(ctx)
	if err != nil {
		return 0, err
	}
	defer release()
	root, err := safepath.OpenBeneath(s.Dir(), w.dir)
	if err != nil {
		return 0, err
	}
	defer closeQuietly(root)
	return tree.Measure(ctx, root)
}

// close stops the measuring, and waits for it. Kinds: Busy when it has not ended by the end of the context.
func (u *usages) close(ctx context.Context) error {
	u.stop()
	return u.group.Wait(ctx)
}

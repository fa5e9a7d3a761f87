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
	// usageAge is how old a measured usage may be.
	usageAge = 15 * time.Minute
	// usageKept is how many usages are remembered.
	usageKept = 10_000
	// measureTime is how long one volume may be measured. A volume that is too large for that, or that a hostile server
	// makes endless, is known to take what was counted by then: it is told of only once that alone is more than its size.
	measureTime = 10 * time.Minute
	// mostWaiting is how many volumes of a share may be measured or wait for it. Others are when they are asked about
	// again.
	mostWaiting = 1000
)

// usages are how much the volumes' files take. To know it every file has to be looked at, so it is measured in the
// background, one volume of a share at a time, when somebody asks about the volume's health; the answer is that of the
// last time. No share waits for another, whose server may be slow on purpose.
type usages struct {
	life  context.Context // of the work in the background, which is no request's
	stop  context.CancelFunc
	group background.Group
	// look is lookAt, but for tests. With an error it returns what was counted before.
	look func(ctx context.Context, w wish) (bytes int64, err error)

	mu      sync.Mutex
	known   map[string]usage  // by the record's key
	waiting map[string][]wish // by the share; the first is being measured
}

type usage struct {
	bytes    int64
	measured bool // else it is being measured for the first time
	at       time.Time
}

// wish is for a volume to be measured.
type wish struct {
	share    *share.Share
	key, dir string
}

func newUsages() *usages {
	life, stop := context.WithCancel(context.Background())
	return &usages{life: life, stop: stop, look: lookAt, known: map[string]usage{}, waiting: map[string][]wish{}}
}

// of returns what was measured last, and has it measured again when that is old.
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

// want has a volume measured when its turn comes, and reports whether there is room for that. A second wish for what
// waits already is the same wish. The mutex is held.
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

// work measures what waits on a share, one after the other, and ends when nothing does.
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

// done takes away what was measured, and returns what is next.
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

// measure notes what a volume takes. After a failure it is tried again as for what is old.
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

// lookAt adds up the blocks of all that can be seen: a pod may have directories that keep the controller out, whom a
// server takes for nobody. The walk follows no link, and keeps nothing of what it has seen.
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

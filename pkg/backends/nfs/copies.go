package nfs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
	"github.com/stowage-csi/stowage/pkg/background"
	"github.com/stowage-csi/stowage/pkg/tree"
)

const (
	// copyWorkers is the number of files of one copy that are copied at a time.
	copyWorkers = 8
	// atOnce is the number of copies that run on a filesystem of a server at a time, whichever of its exports they are on;
	// others wait. Copies on other filesystems do not wait, because this one's server may be dead.
	atOnce = 4
	// maxCopies is the maximum number of copies on a filesystem that the process tracks at a time.
	maxCopies = 256
)

// pace holds the intervals of the work in the background.
type pace struct {
	look     time.Duration // how often a copy checks for changes of its source, and for space
	beat     time.Duration // how often an attempt shows that it is alive
	kept     time.Duration // how long a copy continues, or waits to be published, without a call for it
	patience time.Duration // how long an attempt may show no sign of life before it counts as dead
}

// paceOf returns the pace for a patience, five minutes by default.
func paceOf(patience time.Duration) pace {
	patience = cmp.Or(patience, 5*time.Minute)
	return pace{look: time.Second, beat: patience / 15, kept: 3 * patience, patience: patience}
}

// copies holds the copies under way. A request has a deadline, but a copy may take any time. So a copy runs on its own,
// and each call that requests it waits for a while. It belongs to this process: another process begins its own.
type copies struct {
	pace  pace
	entry func(ctx context.Context) // is called before each entry of a copy; may be nil
	life  context.Context           // of the work in the background, independent of requests
	stop  context.CancelFunc
	group background.Group

	mu    sync.Mutex
	jobs  map[string]*job
	turns map[string]chan struct{} // by filesystem
}

func newCopies(p pace) *copies {
	life, stop := context.WithCancel(context.Background())
	return &copies{pace: p, life: life, stop: stop, turns: map[string]chan struct{}{}, jobs: map[string]*job{}}
}

// run waits for the copy with the key. It begins the copy if it is not under way, or if the one under way has another
// record or source. A failure is reported once. Kinds: Busy, with its progress, when the context ends first; else the
// copy's own.
func (c *copies) run(ctx context.Context, key string, want *record, m *making) (*record, error) {
	j, begun, err := c.join(key, want, m)
	if err != nil {
		return nil, err
	}
	defer c.leave(j)
	if !begun {
		if err := c.begin(key, j, m); err != nil {
			return nil, err
		}
	}
	select {
	case <-j.ended:
	case <-ctx.Done():
		return nil, backends.Errorf(backends.Busy,
			"the data is being copied: %d entries and %d bytes are done so far: ask again", j.progress.Entries.Load(),
			j.progress.Bytes.Load())
	}
	if j.err != nil {
		c.drop(key)
		return nil, j.err
	}
	return j.record, nil
}

// join returns the copy for a call, and whether it has begun: if not, the call begins it.
func (c *copies) join(key string, want *record, m *making) (j *job, begun bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if j := c.jobs[key]; j != nil {
		if j.record.sameAs(want) && slices.Equal(j.from, keysOf(m.origins)) {
			j.waiting++
			return j, true, nil
		}
		j.end()
	} else if c.countOn(m.share) >= maxCopies {
		return nil, false, backends.Errorf(backends.Busy, "%d copies are under way on the filesystem of %s: ask again",
			maxCopies, m.share.Address)
	}
	life, end := context.WithCancel(c.life)
	j = &job{where: m.share.Filesystem(), record: want, from: keysOf(m.origins), life: life, end: end,
		ended: make(chan struct{}), waiting: 1}
	c.jobs[key] = j
	return j, false, nil
}

// countOn returns the number of copies on a share's filesystem. The caller holds the lock.
func (c *copies) countOn(s *share.Share) (count int) {
	for _, j := range c.jobs {
		if j.where == s.Filesystem() {
			count++
		}
	}
	return count
}

// begin turns the permit of the call into the copy's token, and lets the copy wait for its turn. That may take long. If
// another controller is called meanwhile, permits end, but only the tokens of the items of its calls.
func (c *copies) begin(key string, j *job, m *making) error {
	on, release, err := m.kept(j.life)
	if err == nil {
		err = on.orGivenUp(j.record, on.begin(j.record))
	}
	if err != nil {
		release()
		c.drop(key)
		return because(j.life, err)
	}
	j.on = on
	turns := c.turnsOn(m.share)
	c.group.Go(fmt.Sprintf("the copy for %q on %s", j.record.Name, m.share.Address), func() {
		defer release()
		c.live(key, j, turns)
	})
	return nil
}

// turnsOn returns a channel whose capacity is the number of copies that run on a share's filesystem at a time.
func (c *copies) turnsOn(s *share.Share) chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	where := s.Filesystem()
	if c.turns[where] == nil {
		c.turns[where] = make(chan struct{}, atOnce)
	}
	return c.turns[where]
}

// leave notes that a call no longer waits.
func (c *copies) leave(j *job) {
	c.mu.Lock()
	defer c.mu.Unlock()
	j.waiting--
	j.left = time.Now()
}

// drop ends a copy, whether it is under way or waits to be published.
func (c *copies) drop(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if j := c.jobs[key]; j != nil {
		j.end()
		delete(c.jobs, key)
	}
}

// reads reports whether a copy of one of these items is under way.
func (c *copies) reads(ids ...string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, j := range c.jobs {
		select {
		case <-j.ended:
			continue
		default:
		}
		if slices.ContainsFunc(j.from,
			func(key string) bool { id, _, _ := strings.Cut(key, "-"); return slices.Contains(ids, id) }) {
			return true
		}
	}
	return false
}

// plan notes the size of a copy, and returns how much the other copies under way on its filesystem will still take.
func (c *copies) plan(s *share.Share, progress *tree.Progress, bytes int64) (others int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, j := range c.jobs {
		switch {
		case &j.progress == progress:
			j.planned += bytes
			continue
		case j.where != s.Filesystem():
			continue
		}
		select {
		case <-j.ended:
		default:
			others += max(0, j.planned-j.progress.Taken.Load())
		}
	}
	return others
}

// close stops the copies, and waits for them. Kinds: Busy when they have not ended by the end of the context.
func (c *copies) close(ctx context.Context) error {
	c.stop()
	return c.group.Wait(ctx)
}

package nfs

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/tree"
)

const (
	// copyWorkers is how many files of one copy are copied at a time.
	copyWorkers = 8
	// atOnce is how many copies run on a share at a time; others wait. Those of other shares do not: this one may be dead.
	atOnce = 4
	// reportTime is how often the log says how far a copy has come.
	reportTime = 30 * time.Second
)

// copies are the copies under way. A copy takes as long as it takes, and a request has a deadline: so a copy has a life of its
// own, and each call that asks for it waits for a while. After the process was killed the next call begins it again, where
// it was.
type copies struct {
	log   *slog.Logger
	life  context.Context // of the work in the background, which is no request's
	stop  context.CancelFunc
	group sync.WaitGroup

	mu    sync.Mutex
	jobs  map[string]*job
	turns map[string]chan struct{} // by share
}

// job is one copy.
type job struct {
	progress tree.Progress
	ended    chan struct{}
	err      error // read after ended is closed
}

func newCopies(log *slog.Logger) *copies {
	life, stop := context.WithCancel(context.Background())
	return &copies{log: log, life: life, stop: stop, turns: map[string]chan struct{}{}, jobs: map[string]*job{}}
}

// run waits for the copy that is known by the key, and begins it if it is not under way. The outcome is told once.
// Kinds: Busy, with its progress, when the context ends first; else the copy's own.
func (c *copies) run(ctx context.Context, share, key string, work func(ctx context.Context, progress *tree.Progress) error) error {
	j := c.begin(share, key, work)
	select {
	case <-j.ended:
	case <-ctx.Done():
		return backends.Errorf(backends.Busy, "the data is being copied: %d entries and %d bytes are done so far: ask again", j.progress.Entries.Load(), j.progress.Bytes.Load())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.jobs[key] == j {
		delete(c.jobs, key)
	}
	return j.err
}

func (c *copies) begin(share, key string, work func(ctx context.Context, progress *tree.Progress) error) *job {
	c.mu.Lock()
	defer c.mu.Unlock()
	if j := c.jobs[key]; j != nil {
		return j
	}
	j := &job{ended: make(chan struct{})}
	c.jobs[key] = j
	turns := c.turns[share]
	if turns == nil {
		turns = make(chan struct{}, atOnce)
		c.turns[share] = turns
	}
	c.group.Go(func() {
		defer close(j.ended)
		select {
		case turns <- struct{}{}:
			defer func() { <-turns }()
			j.err = c.reported(key, j, work)
		case <-c.life.Done():
			j.err = backends.Errorf(backends.Unavailable, "the driver is stopping")
		}
	})
	return j
}

// reported does the work, and says in the log how it goes if it takes long.
func (c *copies) reported(key string, j *job, work func(ctx context.Context, progress *tree.Progress) error) error {
	begin := time.Now()
	done := make(chan struct{})
	defer close(done)
	go func() {
		tick := time.NewTicker(reportTime)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				c.log.Info("copying", "what", key, "entries", j.progress.Entries.Load(), "bytes", j.progress.Bytes.Load(), "since", time.Since(begin).Round(time.Second))
			case <-done:
				return
			}
		}
	}()
	return work(c.life, &j.progress)
}

// close stops the copies, and waits a little for them.
func (c *copies) close() {
	c.stop()
	waitFor(&c.group, closeGrace)
}

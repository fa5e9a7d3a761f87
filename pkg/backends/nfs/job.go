package nfs

import (
	"context"
	"errors"
	"io/fs"
	"sync"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/tree"
)

// reportTime is the interval between log lines about the progress of a copy.
const reportTime = 30 * time.Second

// job is one copy, from the request until it is published or given up.
type job struct {
	where    string // the filesystem of the copy
	record   *record
	from     []string // the keys of its sources: another item may get the name of a source
	progress tree.Progress
	on       *making         // its attempt, once its token exists
	beat     time.Time       // when it last showed that it is alive
	life     context.Context // of the copy, independent of requests
	end      context.CancelFunc
	ended    chan struct{}
	err      error // read after ended is closed

	// Guarded by the mutex of copies.
	waiting   int
	left      time.Time // when the last call left
	planned   int64     // the size of the sources, in bytes
	published bool
}

// live makes a copy in its turn, and keeps it until it is published or no longer wanted.
func (c *copies) live(key string, j *job, turns chan struct{}) {
	ctx, stop := every(j.life, c.pace.look, func() error { return c.wanted(j) })
	defer stop()
	j.err = because(ctx, j.copied(ctx, turns))
	close(j.ended)
	<-ctx.Done()
	if !c.forget(key, j) && j.err == nil {
		j.on.giveUp(j.on.share, j.on.home, j.record)
	}
}

// wanted fails if no call has requested a copy for long, or if another attempt has replaced it. It also shows others
// that the attempt is alive.
func (c *copies) wanted(j *job) error {
	c.mu.Lock()
	unwanted := j.waiting == 0 && time.Since(j.left) > c.pace.kept
	c.mu.Unlock()
	if unwanted {
		return backends.Errorf(backends.Unavailable,
			"no call has asked for the copy for %v, so that it was given up: ask again", c.pace.kept)
	}
	if time.Since(j.beat) < c.pace.beat {
		return nil
	}
	j.beat = time.Now()
	if errors.Is(j.on.home.Touch(j.record.key()+suffix), fs.ErrNotExist) {
		return backends.Errorf(backends.Busy, "%w", errFenced)
	}
	return nil
}

// done notes that a copy is published, and ends it.
func (c *copies) done(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if j := c.jobs[key]; j != nil {
		j.published = true
		j.end()
		delete(c.jobs, key)
	}
}

// forget removes a copy that has ended, and reports whether it was published.
func (c *copies) forget(key string, j *job) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.jobs[key] == j {
		delete(c.jobs, key)
	}
	return j.published
}

// copied creates the draft of a copy in its turn.
func (j *job) copied(ctx context.Context, turns chan struct{}) error {
	select {
	case turns <- struct{}{}:
		defer func() { <-turns }()
		defer j.on.report(j)()
		return j.on.orGivenUp(j.record, j.on.fill(ctx, j.record, &j.progress))
	case <-ctx.Done():
		return j.on.orGivenUp(j.record, ctx.Err())
	}
}

// kept returns m on a share that stays mounted until release is called.
func (m *making) kept(ctx context.Context) (on *making, release func(), err error) {
	s, release, err := m.share.Hold(ctx)
	if err != nil {
		return nil, func() {}, err
	}
	kept := *m
	kept.share = s
	kept.home, err = s.Home(false)
	return &kept, release, err
}

// report logs the progress of a long copy, until the returned function is called.
func (m *making) report(j *job) (stop func()) {
	begin := time.Now()
	_, stop = every(context.Background(), reportTime, func() error {
		m.log.Info("copying", "what", j.record.Name, "entries", j.progress.Entries.Load(), "bytes", j.progress.Bytes.Load(),
			"since", time.Since(begin).Round(time.Second))
		return nil
	})
	return stop
}

// every calls look at intervals, until stop is called. The returned context ends with the first failure.
func every(parent context.Context, pause time.Duration, look func() error) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	var looking sync.WaitGroup
	looking.Go(func() {
		tick := time.NewTicker(pause)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if err := look(); err != nil {
					cancel(err)
				}
			}
		}
	})
	return ctx, func() { cancel(nil); looking.Wait() }
}

// because returns the cause of a failure: the failure itself, or the cause of its context's end.
func because(ctx context.Context, err error) error {
	if !errors.Is(err, context.Canceled) || ctx.Err() == nil {
		return err
	}
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return backends.Errorf(backends.Unavailable, "the copy was ended, as the driver is stopping: ask again")
}

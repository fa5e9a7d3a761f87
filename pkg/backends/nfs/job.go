package nfs

import (
	"context"
	"errors"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/tree"
)

// reportTime is how often the log says how far a copy has come.
const reportTime = 30 * time.Second

// job is one copy, from when it is asked for until it is published or given up.
type job struct {
	record   *record
	from     []string // the keys of its sources: another one may get the name of a source
	progress tree.Progress
	on       atomic.Pointer[making] // where it is made, once its token is there
	beat     time.Time              // when it last showed that it is alive
	end      context.CancelFunc
	ended    chan struct{}
	err      error // read after ended is closed

	// Guarded by the mutex of copies.
	waiting   int
	left      time.Time // when the last call left
	planned   int64     // how much the sources take, in bytes
	published bool
}

// live makes a copy in its turn, and keeps it until it is published or nobody wants it.
func (c *copies) live(ctx context.Context, key string, j *job, m *making, turns chan struct{}) {
	ctx, stop := every(ctx, c.pace.look, func() error { return c.wanted(j) })
	defer stop()
	select {
	case turns <- struct{}{}:
		release, err := m.copied(ctx, j)
		<-turns
		j.err = because(ctx, err)
		close(j.ended)
		defer release()
	case <-ctx.Done():
		j.err = because(ctx, ctx.Err())
		close(j.ended)
	}
	<-ctx.Done()
	if on := j.on.Load(); !c.forget(key, j) && j.err == nil {
		on.giveUp(on.share, on.home, j.record)
	}
}

// wanted fails when no call has asked for a copy for long, or when another attempt has taken its place. It shows others that the
// attempt is alive.
func (c *copies) wanted(j *job) error {
	c.mu.Lock()
	unwanted := j.waiting == 0 && time.Since(j.left) > c.pace.kept
	c.mu.Unlock()
	if unwanted {
		return backends.Errorf(backends.Unavailable, "no call has asked for the copy for %v, so that it was given up: ask again", c.pace.kept)
	}
	on := j.on.Load()
	if on == nil || time.Since(j.beat) < c.pace.beat {
		return nil
	}
	j.beat = time.Now()
	if errors.Is(on.home.Touch(j.record.key()+suffix), fs.ErrNotExist) {
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

// forget forgets a copy that has ended, and reports whether it was published.
func (c *copies) forget(key string, j *job) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.jobs[key] == j {
		delete(c.jobs, key)
	}
	return j.published
}

// copied makes the draft of a copy, on a share that is kept until release is called.
func (m *making) copied(ctx context.Context, j *job) (release func(), err error) {
	s, release, err := m.share.Hold(ctx)
	if err != nil {
		return func() {}, err
	}
	on := *m
	on.share = s
	if on.home, err = s.Home(false); err != nil {
		return release, err
	}
	defer m.report(j)()
	if err = on.begin(j.record); err == nil {
		j.on.Store(&on) // Its token is there, and shows from now on that it is alive.
		err = on.fill(ctx, j.record, &j.progress)
	}
	if err = on.unlessFenced(j.record, err); err != nil {
		on.giveUp(on.share, on.home, j.record)
	}
	return release, err
}

// report says in the log how a copy goes if it takes long, until the function that it returns is called.
func (m *making) report(j *job) (stop func()) {
	begin := time.Now()
	_, stop = every(context.Background(), reportTime, func() error {
		m.log.Info("copying", "what", j.record.Name, "entries", j.progress.Entries.Load(), "bytes", j.progress.Bytes.Load(), "since", time.Since(begin).Round(time.Second))
		return nil
	})
	return stop
}

// every looks now and then, until stop is called. The context that it returns ends with the first failure.
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

// because is why work has failed: the failure itself, or why its context was ended.
func because(ctx context.Context, err error) error {
	if !errors.Is(err, context.Canceled) || ctx.Err() == nil {
		return err
	}
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return backends.Errorf(backends.Unavailable, "the copy was ended, as the driver is stopping: ask again")
}

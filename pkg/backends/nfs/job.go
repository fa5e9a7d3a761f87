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

// reportTime is how often the log says how far a copy has come.
const reportTime = 30 * time.Second

// job is one copy, from when it is asked for until it is published or given up.
type job struct {
	where    string // the filesystem on which it is made
	record   *record
	from     []string // the keys of its sources: another one may get the name of a source
	progress tree.Progress
	on       *making         // where it is made, once its token is there
	beat     time.Time       // when it last showed that it is alive
	life     context.Context // of the copy, which is no request's
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

// wanted fails when no call has asked for a copy for long, or when another attempt has taken its place. It shows others
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

// forget forgets a copy that has ended, and reports whether it was published.
func (c *copies) forget(key string, j *job) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.jobs[key] == j {
		delete(c.jobs, key)
	}
	return j.published
}

// copied makes the draft of a copy once it is its turn.
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

// kept is m on a share that is kept until release is called.
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

// report says in the log how a copy goes if it takes long, until the function that it returns is called.
func (m *making) report(j *job) (stop func()) {
	begin := time.Now()
	_, stop = every(context.Background(), reportTime, func() error {
		m.log.Info("copying", "what", j.record.Name, "entries", j.progress.Entries.Load(), "bytes", j.progress.Bytes.Load(),
			"since", time.Since(begin).Round(time.Second))
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

package nfs

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends/nfs/export"
	"github.com/stowage-csi/stowage/pkg/background"
)

const (
	// firstRetry is the wait of a janitor after a failure. Each further failure doubles it, up to lastRetry.
	firstRetry, lastRetry = time.Second, time.Minute
	// claimsSwept is the interval between searches for claims without a holder, which read all claims.
	claimsSwept = 15 * time.Minute
)

// janitors remove the trash of the shares and the remains of dead attempts, in the background: one goroutine for each
// share that has some. Unfinished work is done later by this process or another: the share itself shows what is left to
// do.
type janitors struct {
	engine *engine
	life   context.Context // of the work in the background, independent of requests
	stop   context.CancelFunc
	group  background.Group
	// lookouts are the searches for remains.
	lookouts lookouts

	mu     sync.Mutex
	known  map[string]bool          // shares that were checked since the start
	swept  map[string]time.Time     // the last search for claims without a holder
	strays map[string]time.Time     // the last log line about files among the claims
	active map[string]chan struct{} // shares with a goroutine, and the channel that tells it of more work
	seen   map[string]sighting      // by the path of entries that may be alive
	closed bool
}

func newJanitors(e *engine) *janitors {
	life, stop := context.WithCancel(context.Background())
	return &janitors{
		engine: e, life: life, stop: stop, known: map[string]bool{}, swept: map[string]time.Time{},
		strays: map[string]time.Time{}, active: map[string]chan struct{}{}, seen: map[string]sighting{},
	}
}

// wake has a share checked for remains of an earlier process, unless it was checked since the start.
func (j *janitors) wake(address export.Address) {
	j.mu.Lock()
	first := !j.known[address.String()]
	j.mu.Unlock()
	if first {
		j.add(address)
	}
}

// add makes a janitor remove the trash of a share.
func (j *janitors) add(address export.Address) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return
	}
	name := address.String()
	j.known[name] = true
	if more, runs := j.active[name]; runs {
		select {
		case more <- struct{}{}:
		default:
		}
		return
	}
	more := make(chan struct{}, 1)
	j.active[name] = more
	j.group.Go("tidying up the share "+name, func() { j.work(address, more) })
}

// work makes rounds until one finds everything done. Between two rounds it waits for attempts that may be alive, and
// after a failure for the server.
func (j *janitors) work(address export.Address, more chan struct{}) {
	wait := firstRetry
	for {
		alive, err := j.round(address)
		if j.engine.pool.Distrust(address, err); errors.Is(err, unix.ESTALE) {
			alive, err = j.round(address)
		}
		switch {
		case err != nil && j.life.Err() == nil:
			j.engine.log.Warn("trash could not be removed: it is tried again", "share", address.String(), "after", wait, "error",
				err)
			j.pause(wait, nil)
			wait = min(2*wait, lastRetry)
			continue
		case alive && j.life.Err() == nil:
			j.pause(j.engine.copies.pace.patience/2, more)
		}
		wait = firstRetry
		if !alive && j.done(address.String(), more) || j.life.Err() != nil {
			return
		}
	}
}

// pause waits for the given time, or until there is more to do.
func (j *janitors) pause(wait time.Duration, more <-chan struct{}) {
	select {
	case <-time.After(wait):
	case <-more:
	case <-j.life.Done():
	}
}

// done reports whether the goroutine may end, and notes that it does.
func (j *janitors) done(name string, more <-chan struct{}) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	select {
	case <-more:
		return false
	default:
	}
	delete(j.active, name)
	return true
}

// round removes the trash of a share and the remains of dead attempts. It reports whether an attempt may be alive.
func (j *janitors) round(address export.Address) (alive bool, err error) {
	s, release, err := j.engine.pool.HoldBriefly(j.life, address)
	if err != nil {
		return false, err
	}
	defer release()
	h, err := s.Home(false)
	if err != nil {
		return false, err
	}
	earlier := j.earlier(s, h)
	err = errors.Join(earlier, j.trash(s, h))
	alive, failed := j.drafts(s, h)
	err = errors.Join(err, failed)
	if j.sweepDue(address.String()) { // also if a record cannot be read: that does not stop other work
		failed := j.claims(s, h)
		if failed != nil {
			j.sweepAgain(address.String())
		}
		err = errors.Join(err, failed)
	}
	return alive, err
}

// sweepDue reports whether a search for claims without a holder is due.
func (j *janitors) sweepDue(name string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if last, ok := j.swept[name]; ok && time.Since(last) < claimsSwept {
		return false
	}
	j.swept[name] = time.Now()
	return true
}

// sweepAgain makes the next round search for claims without a holder.
func (j *janitors) sweepAgain(name string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.swept, name)
}

// close ends the work, and waits for it. Kinds: Busy when it has not ended by the end of the context.
func (j *janitors) close(ctx context.Context) error {
	j.mu.Lock()
	j.closed = true
	j.mu.Unlock()
	j.stop()
	return j.group.Wait(ctx)
}

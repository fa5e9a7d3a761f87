package mount

import (
	"context"
	"syscall"
	"time"
)

// A process that is being started at this moment has a copy of every descriptor of this one until it
// runs its program, those on the mount included: so "in use" is believed only when it lasts, and after the
// processes that were being started then run. On a busy node that takes longer than busyPatience.
const (
	busyPatience  = 50 * time.Millisecond
	busyPoll      = 5 * time.Millisecond
	startPatience = 2 * time.Second // with a process that cannot start, as while a FUSE server does not answer
)

// busy decides whether a mount that is said to be in use is.
type busy struct {
	patience *time.Timer
	over     bool
}

func newBusy() *busy { return &busy{patience: time.NewTimer(busyPatience)} }

// doubted waits for a moment and reports whether to look again: until the patience is over, and then once more.
func (b *busy) doubted(ctx context.Context) bool {
	if b.over {
		return false
	}
	select {
	case <-b.patience.C:
		b.over = true
		awaitStarts(ctx)
	case <-time.After(busyPoll):
	}
	return true
}

// awaitStarts returns once no process is being started by this one: who starts one has the lock until that runs
// its program (syscall.ForkLock).
func awaitStarts(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	for ctx.Err() == nil {
		if syscall.ForkLock.TryRLock() {
			syscall.ForkLock.RUnlock()
			return
		}
		<-time.After(busyPoll)
	}
}

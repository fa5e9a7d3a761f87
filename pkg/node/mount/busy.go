package mount

import (
	"context"
	"syscall"
	"time"
)

// A process that is being started at this moment has a copy of every descriptor of this process until it executes its
// program, including descriptors on the mount. So "in use" is believed only if it persists, and only after the
// processes that were being started have executed. On a busy node that takes longer than busyPatience.
const (
	busyPatience  = 50 * time.Millisecond
	busyPoll      = 5 * time.Millisecond
	startPatience = 2 * time.Second // with a process that cannot start, as while a FUSE server does not answer
)

// busy decides whether a mount that is reported to be in use really is.
type busy struct {
	patience *time.Timer
	over     bool
}

func newBusy() *busy { return &busy{patience: time.NewTimer(busyPatience)} }

// doubted waits for a moment and reports whether to try again: until the patience is over, and then once more.
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

// awaitStarts returns once this process is starting no other: the goroutine that starts one holds syscall.ForkLock
// until the new process executes its program.
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

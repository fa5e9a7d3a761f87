package trim

import (
	"context"
	"time"
)

// patience is how long a device may take for one range before other volumes are trimmed concurrently.
const patience = time.Minute

// run is one trim of a volume.
type run struct {
	Volume
	ctx      context.Context // ends with a pause
	cancel   context.CancelFunc
	answered chan struct{}
	done     chan struct{} // closed when nothing is open any more
}

func newRun(ctx context.Context, v Volume) *run {
	r := &run{Volume: v, answered: make(chan struct{}, 1), done: make(chan struct{})}
	r.ctx, r.cancel = context.WithCancel(ctx)
	return r
}

// answer notes that the device has answered.
func (r *run) answer() {
	select {
	case r.answered <- struct{}{}:
	default: // An earlier answer has not been received yet.
	}
}

// await waits for the end of the run and reports whether it ended. It gives up if the device does not answer within
// patience.
func (r *run) await() bool {
	for {
		select {
		case <-r.done:
			return true
		case <-r.answered:
		case <-time.After(patience):
			return false
		}
	}
}

func (r *run) end() {
	r.cancel()
	close(r.done)
}

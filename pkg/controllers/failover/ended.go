package failover

import (
	"sync"
	"time"

	"github.com/stowage-csi/stowage/pkg/machines"
)

// ended remembers since when the provider has said, of machines that no Node is any more, that they are stopped or
// missing. What it says may be old, and there is no sign of life to compare it with.
type ended struct {
	mu    sync.Mutex
	first map[string]time.Time // by the machine's ID
}

// mostEnded is how many machines are remembered.
const mostEnded = 10_000

// since is for how long the machine has been said to be stopped or missing; 0 if it is neither.
func (e *ended) since(machine string, state machines.State, now time.Time) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	if state != machines.Stopped && state != machines.Missing {
		delete(e.first, machine)
		return 0
	}
	first, isKnown := e.first[machine]
	if !isKnown {
		if len(e.first) >= mostEnded {
			clear(e.first)
		}
		first, e.first[machine] = now, now
	}
	return now.Sub(first)
}

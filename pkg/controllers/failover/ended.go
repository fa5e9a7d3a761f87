package failover

import (
	"sync"
	"time"

	"github.com/stowage-csi/stowage/pkg/machines"
)

// ended remembers since when the provider has said, of machines that no Node is any more, that they are stopped or
// missing. What it says may be old, and there is no sign of life to compare it with.
type ended struct {
	mu   sync.Mutex
	said map[string]span // by the machine's ID
}

// span is when something was said for the first time, and when last.
type span struct{ first, last time.Time }

const (
	// mostEnded is how many machines are remembered.
	mostEnded = 10_000
	// gap is how long nothing may be said in between: csi-attacher asks each minute.
	gap = 5 * time.Minute
)

// since is for how long the machine has been said to be stopped or missing; 0 if it is neither.
func (e *ended) since(machine string, state machines.State, now time.Time) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	if state != machines.Stopped && state != machines.Missing {
		delete(e.said, machine)
		return 0
	}
	said, isKnown := e.said[machine]
	if !isKnown && len(e.said) >= mostEnded {
		clear(e.said)
	}
	if !isKnown || now.Sub(said.last) > gap {
		said.first = now
	}
	said.last = now
	e.said[machine] = said
	return now.Sub(said.first)
}

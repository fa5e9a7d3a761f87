package failover

import (
	"sync"
	"time"

	"github.com/stowage-csi/stowage/pkg/machines"
)

// ended remembers since when the provider has reported machines without a Node as stopped or missing. The reports may
// be outdated, and without a Node there is no sign of life to compare them with.
type ended struct {
	mu   sync.Mutex
	said map[string]span // by the machine's ID
}

// span holds the times of the first and the last report.
type span struct{ first, last time.Time }

const (
	// mostEnded is the maximum number of machines remembered.
	mostEnded = 10_000
	// gap is the maximum time between two reports: csi-attacher asks each minute.
	gap = 5 * time.Minute
)

// since notes a report, and returns how long the machine has been reported as stopped or missing, or 0 if it is
// neither.
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

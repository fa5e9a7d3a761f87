package ebs

import (
	"sync"
	"time"
)

// recent remembers what befell volumes and snapshots a short while ago.
type recent struct {
	while time.Duration

	mu sync.Mutex
	at map[string]time.Time // by ID
}

// note takes down that it befell a thing so long ago, and forgets what is no longer recent.
func (r *recent) note(id string, ago time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.at == nil {
		r.at = map[string]time.Time{}
	}
	for other, at := range r.at {
		if time.Since(at) > r.while {
			delete(r.at, other)
		}
	}
	r.at[id] = time.Now().Add(-ago)
}

// left is for how long it stays recent: 0 or less for what is not.
func (r *recent) left(id string) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, ok := r.at[id]
	if !ok {
		return 0
	}
	return r.while - time.Since(at)
}

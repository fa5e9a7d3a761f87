package ebs

import (
	"sync"
	"time"
)

// recent remembers what befell volumes and snapshots so lately that EC2 may not act by it yet. The zero value is ready
// for use.
type recent struct {
	mu sync.Mutex
	at map[string]time.Time // by ID
}

// note takes down that it befell a thing so long ago, and forgets what is no longer recent.
func (r *recent) note(id string, ago, settle time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.at == nil {
		r.at = map[string]time.Time{}
	}
	for other, at := range r.at {
		if time.Since(at) > settle {
			delete(r.at, other)
		}
	}
	r.at[id] = time.Now().Add(-ago)
}

// left is for how long it stays recent: 0 or less for what is not.
func (r *recent) left(id string, settle time.Duration) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, ok := r.at[id]
	if !ok {
		return 0
	}
	return settle - time.Since(at)
}

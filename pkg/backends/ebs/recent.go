package ebs

import (
	"sync"
	"time"
)

// recent remembers recent events, such as a deletion, by the ID of their volume or snapshot.
type recent struct {
	while time.Duration

	mu sync.Mutex
	at map[string]time.Time // by ID
}

// note records that the event happened the given time ago, and forgets events that are no longer recent.
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

// left returns how much longer the event is recent; 0 or less if it is not.
func (r *recent) left(id string) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, ok := r.at[id]
	if !ok {
		return 0
	}
	return r.while - time.Since(at)
}

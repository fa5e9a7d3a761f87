package ebs

import (
	"sync"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// dying remembers when a request to delete something got no answer: it may arrive yet. The zero value is ready for use.
type dying struct {
	mu   sync.Mutex
	lost map[string]time.Time // by ID
}

// lose takes such a request down, and forgets those that can arrive no more.
func (d *dying) lose(id string, settle time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lost == nil {
		d.lost = map[string]time.Time{}
	}
	for other, at := range d.lost {
		if time.Since(at) > settle {
			delete(d.lost, other)
		}
	}
	d.lost[id] = time.Now()
}

// left is for how long such a request may still arrive.
func (d *dying) left(id string, settle time.Duration) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	at, ok := d.lost[id]
	if !ok {
		return 0
	}
	return settle - time.Since(at)
}

// staying fails for what may be deleted in a moment by a request of a call that has ended: whoever was told of it would
// lose it. Kinds: Busy.
func (b *backend) staying(id string) error {
	if what, busy := b.deleting.Under(id); busy {
		return backends.Errorf(backends.Busy, "%s is under way: ask again", what)
	}
	if left := b.dying.left(id, b.config.Timing.Settle); left > 0 {
		return backends.Errorf(backends.Busy,
			"EC2 has not answered a request to delete %s, which may still arrive: in %v it is certain whether it stays: "+
				"ask again", id, left.Round(time.Second))
	}
	return nil
}

// unanswered takes down a request to delete something that got no answer.
func (b *backend) unanswered(id string, err error) {
	if backends.Is(err, backends.Unavailable) && !throttled(err) && !turnedAway(err) {
		b.dying.lose(id, b.config.Timing.Settle)
	}
}

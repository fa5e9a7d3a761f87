package nfs

import (
	"sync"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
)

const (
	// firstRest is how long a volume must have been left alone after its copy was disturbed once.
	firstRest = time.Second
	// restlessKept is how many volumes are remembered.
	restlessKept = 1000
)

// restless are the volumes that were written to while they were copied. Each time, the next copy asks that the volume
// has been left alone for twice as long before it begins, and at least for as long as the last one went well. So a
// writer that never stops costs few copies, and then a look at the volume for each call.
type restless struct {
	mu   sync.Mutex
	rest map[string]time.Duration // by the volume's ID
}

// asked is how long a volume must have been left alone.
func (r *restless) asked(id string) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rest[id]
}

// calm notes that a copy was not disturbed.
func (r *restless) calm(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.rest, id)
}

// disturbed notes that a copy was, after so long.
func (r *restless) disturbed(id string, after time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rest == nil || len(r.rest) >= restlessKept {
		r.rest = map[string]time.Duration{}
	}
	r.rest[id] = max(2*r.rest[id], after, firstRest)
}

// refusal says what to do about a volume that is written to. Kinds: InUse.
func (r *restless) refusal(from *origin, cause error) error {
	return backends.Errorf(backends.InUse,
		"%s %s is written to, so that the copy is of no single instant: stop what writes until nothing has been written "+
			"for %v, or accept that with sourceInUse=copy: %w",
		from.kind, from.handle, max(r.asked(from.id), firstRest).Round(time.Second), cause)
}

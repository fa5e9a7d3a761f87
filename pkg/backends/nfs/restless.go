package nfs

import (
	"sync"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
)

const (
	// firstRest is how long a volume must have been unchanged after its copy was disturbed once.
	firstRest = time.Second
	// restlessKept is the number of remembered volumes.
	restlessKept = 1000
)

// restless holds the volumes that were written to while they were copied. Each time, the time doubles for which the
// volume must have been unchanged before the next copy begins. It is also at least as long as the last copy ran
// undisturbed. So a writer that never stops costs few copies, and then a look at the volume for each call.
type restless struct {
	mu   sync.Mutex
	rest map[string]time.Duration // by the volume's ID
}

// asked returns how long a volume must have been unchanged.
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

// disturbed notes that a copy was disturbed, after the given time.
func (r *restless) disturbed(id string, after time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rest == nil || len(r.rest) >= restlessKept {
		r.rest = map[string]time.Duration{}
	}
	r.rest[id] = max(2*r.rest[id], after, firstRest)
}

// refusal returns the failure for a volume that is written to, with advice. Kinds: InUse.
func (r *restless) refusal(from *origin, cause error) error {
	return backends.Errorf(backends.InUse,
		"%s %s is written to, so that the copy is of no single instant: stop what writes until nothing has been written "+
			"for %v, or accept that with sourceInUse=copy: %w",
		from.kind, from.handle, max(r.asked(from.id), firstRest).Round(time.Second), cause)
}

package node

import (
	"sync"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// mostFailures bounds the number of remembered failures; the oldest is dropped first.
const mostFailures = 1000

// failures are the last failed attempts to stage or publish volumes. Such a volume has no record, and CSI lets the
// orchestrator ask what is wrong with it (NodeGetVolumeHealth).
type failures struct {
	mu   sync.Mutex
	last map[attempt]lastFailure
}

// attempt is the volume and the path of an attempt.
type attempt struct{ volume, path string }

type lastFailure struct {
	issue backends.HealthIssue
	at    time.Time // by the local monotonic clock
}

// note records how an attempt ended. Busy and NotFound say nothing about the volume: another attempt is under way, or
// the volume does not exist.
func (f *failures) note(a attempt, reason string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.last, a)
	if err == nil || backends.Is(err, backends.Busy) || backends.Is(err, backends.NotFound) {
		return
	}
	if f.last == nil {
		f.last = map[attempt]lastFailure{}
	}
	if len(f.last) >= mostFailures {
		f.forgetOldest()
	}
	f.last[a] = lastFailure{backends.HealthIssue{Status: backends.Inaccessible, Reason: reason,
		Message: "the last attempt failed: " + err.Error()}, time.Now()}
}

func (f *failures) forgetOldest() {
	var oldest attempt
	for a, failure := range f.last {
		if first, ok := f.last[oldest]; !ok || failure.at.Before(first.at) {
			oldest = a
		}
	}
	delete(f.last, oldest)
}

// forget drops the failure of an attempt that was undone.
func (f *failures) forget(a attempt) { f.note(a, "", nil) }

// of returns the failures of a volume by path.
func (f *failures) of(volume string) map[string]backends.HealthIssue {
	f.mu.Lock()
	defer f.mu.Unlock()
	found := map[string]backends.HealthIssue{}
	for a, failure := range f.last {
		if a.volume == volume {
			found[a.path] = failure.issue
		}
	}
	return found
}

package ebs

import (
	"context"
	"sync"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/cloud/flight"
)

const (
	// mostAbsent is how many names are remembered. Beyond that, any name is forgotten: its refusals become final later.
	mostAbsent = 10_000
	// keepAbsent is how far apart two looks for a name may be. It is longer than a sidecar's longest pause, five minutes.
	// Longer means that another controller may have served in between. One that served for less is not noticed.
	keepAbsent = 10 * time.Minute
)

// refusals decides whether the refusal to create a volume or snapshot is final. A caller that gets a final refusal
// forgets the name, but an earlier process may have created a thing of that name that EC2 does not show yet. So a
// refusal is final only once looks have not shown any for twice Settle: an earlier request may take effect until
// Settle after the first look, and reads show its effect within another Settle.
type refusals struct {
	settle time.Duration

	mu     sync.Mutex
	absent map[string]absence // by name
}

// absence is a time in which no look has shown anything of a name.
type absence struct {
	since time.Time // when the first look ended
	until time.Time // when the last look began
}

// note records that a look, which began at the given time and has just ended, shows nothing of the name.
func (r *refusals) note(name string, began time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.absent == nil {
		r.absent = map[string]absence{}
	}
	a, known := r.absent[name]
	if !known || time.Since(a.until) > keepAbsent {
		a.since = time.Now()
	}
	a.until = began
	for other := range r.absent {
		if known || len(r.absent) < mostAbsent {
			break
		}
		delete(r.absent, other)
	}
	r.absent[name] = a
}

// forget makes the time begin anew, because a request may have created a thing of that name, or because it shows.
func (r *refusals) forget(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.absent, name)
}

// left returns how much longer looks must show nothing of the name before its refusals are final. It returns false if
// no look has shown that yet, or if that has changed since.
func (r *refusals) left(name string) (time.Duration, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a, noted := r.absent[name]
	return 2*r.settle - a.until.Sub(a.since), noted
}

// settled makes attempts to create a thing of the name until the outcome is final or open. A caller that has enough
// time waits until a refusal is final. Kinds: those of attempt; Unavailable for a refusal that is not final yet.
func settled[T any](ctx context.Context, r *refusals, name string, attempt func() (T, error)) (T, error) {
	for {
		made, err := attempt()
		if err == nil {
			r.forget(name)
		}
		left, noted := r.left(name)
		if !isRefusal(err) || left <= 0 {
			return made, err
		}
		if !noted { // Waiting does not help.
			return made, backends.Errorf(backends.Unavailable,
				"%w; whether a volume or snapshot has this name is not known yet: ask again", err)
		}
		end, limited := flight.Deadline(ctx)
		if limited && time.Until(end) < left+r.settle/10 || rest(ctx, left) != nil {
			return made, backends.Errorf(backends.Unavailable, "%w; EC2 may not show yet a volume or snapshot of this name "+
				"that was requested before: ask again; the refusal is final if none shows for another %v", err,
				left.Round(time.Second))
		}
	}
}

// isRefusal reports whether an error makes the caller forget the name. No refusal proves that nothing has the name: EC2
// may check everything else before the client token. It even refuses a request with the token of the volume that has
// filled a quota (kubernetes-sigs/aws-ebs-csi-driver, issue 2512).
func isRefusal(err error) bool {
	if err == nil {
		return false
	}
	switch backends.KindOf(err) {
	case backends.Exists, backends.Busy, backends.Unavailable, backends.Unusable:
		return false
	default:
		return true
	}
}

// rest pauses. It fails if the context ends first.
func rest(ctx context.Context, pause time.Duration) error {
	select {
	case <-time.After(pause):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

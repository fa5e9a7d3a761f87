package volumeset

import (
	"time"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// bearing is a surplus that is borne for a while: since when this manager has seen it, and how long those before it
// had.
type bearing struct {
	since  time.Time
	before time.Duration
}

// step is how often the set's status says how long a surplus has been borne: what a change of leaders may cost.
func (r *reconciler) step() time.Duration { return max(time.Second, r.patient/5) }

// isDue reports whether a set's surplus has been borne for long enough, and else how long it is until the next look at
// it. Each manager counts by its own clock, and goes on from what the status says.
func (r *reconciler) isDue(set string) (due bool, wait time.Duration) {
	borne, ok := r.borne(set)
	if !ok || borne >= r.patient {
		return ok, 0
	}
	return false, min(r.patient-borne, r.step())
}

// borne is how long a set has had a surplus, if it has one.
func (r *reconciler) borne(set string) (time.Duration, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	b, ok := r.surplus[set]
	return b.before + r.now().Sub(b.since), ok
}

// bear notes whether a set has a surplus, and reports whether that is new. Before is how long it had it when this
// manager came.
func (r *reconciler) bear(set string, surplus bool, before time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, known := r.surplus[set]
	switch {
	case surplus && !known:
		r.surplus[set] = bearing{since: r.now(), before: before}
	case !surplus:
		delete(r.surplus, set)
	}
	return surplus && !known
}

// noteSurplus writes into the status how long the surplus has been borne, in steps: other managers go on from there.
func (r *reconciler) noteSurplus(set *v1alpha1.PersistentVolumeSet) {
	borne, ok := r.borne(set.Name)
	if !ok {
		set.Status.SurplusSeconds = 0
		return
	}
	borne = min(borne, r.patient)
	if noted := time.Duration(set.Status.SurplusSeconds) * time.Second; borne >= noted+r.step() {
		set.Status.SurplusSeconds = int32(borne / time.Second) // It is no longer than the delay.
	}
}

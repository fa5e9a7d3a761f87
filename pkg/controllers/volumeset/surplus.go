package volumeset

import (
	"time"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// bearing is a surplus that is kept for a while: the time when this manager first saw it, and how long earlier managers
// kept it.
type bearing struct {
	since  time.Time
	before time.Duration
}

// step is the interval at which the set's status records the age of a surplus. A change of leaders loses at most one
// step.
func (r *reconciler) step() time.Duration { return max(time.Second, r.patient/5) }

// isDue reports whether a set's surplus has been kept long enough. If not, wait is the time until the next check. Each
// manager measures with its own clock and adds the age recorded in the status.
func (r *reconciler) isDue(set string) (due bool, wait time.Duration) {
	borne, ok := r.borne(set)
	if !ok || borne >= r.patient {
		return ok, 0
	}
	return false, min(r.patient-borne, r.step())
}

// borne returns how long a set has had a surplus, if it has one.
func (r *reconciler) borne(set string) (time.Duration, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	b, ok := r.surplus[set]
	return b.before + r.now().Sub(b.since), ok
}

// bear notes whether a set has a surplus, and reports whether the surplus is new. Before is its age when this manager
// first saw it.
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

// noteSurplus puts the age of the surplus into the status, in steps. Other managers continue from there.
func (r *reconciler) noteSurplus(set *v1alpha1.PersistentVolumeSet) {
	borne, ok := r.borne(set.Name)
	if !ok {
		set.Status.SurplusSeconds = 0
		return
	}
	borne = min(borne, r.patient)
	if noted := time.Duration(set.Status.SurplusSeconds) * time.Second; borne >= noted+r.step() {
		set.Status.SurplusSeconds = int32(borne / time.Second) // At most the delay.
	}
}

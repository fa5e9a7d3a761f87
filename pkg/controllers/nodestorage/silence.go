package nodestorage

import (
	"fmt"
	"time"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// patience is the time in which a worker must begin a request.
const patience = 10 * time.Minute

// listen returns a problem if a worker does not begin its requests, by this process's own clock. Again is the pause
// until the next check, or 0 if no request waits.
func (r *reconciler) listen(v *view) (told []problem, again time.Duration) {
	if v.labels == nil {
		return nil, 0 // There is no node for the worker.
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now, since, isLate := r.now(), map[string]time.Time{}, false
	for _, what := range asked(v.storage) {
		first, isKnown := r.asked[v.storage.Name][what]
		if !isKnown {
			first = now
		}
		since[what] = first
		left := patience - now.Sub(first)
		isLate = isLate || left <= 0
		again = soonest(again, left)
	}
	r.asked[v.storage.Name] = since
	if isLate {
		told = append(told, problem{v.storage, "WorkerSilent",
			fmt.Sprintf("the worker of node %s has not taken up in %v what it was asked for: look at the pods stowage-disks and"+
				" stowage-disks-worker of the node", v.storage.Name, patience)})
	}
	return told, again
}

// asked returns the deletions and offers that the worker has not begun.
func asked(storage *v1alpha1.NodeStorage) (all []string) {
	states := map[v1alpha1.OperationID]v1alpha1.DeleteState{}
	for _, s := range storage.Status.DeleteOperations {
		states[s.ID] = s.State
	}
	for _, d := range storage.Spec.DeleteOperations {
		if state := states[d.ID]; state == "" || state == v1alpha1.DeleteRequested {
			all = append(all, string(d.ID))
		}
	}
	isFree := map[v1alpha1.VolumeName]bool{}
	for _, f := range storage.Status.LocalVolumes {
		isFree[f.Name] = f.State == v1alpha1.VolumeAvailable
	}
	for _, o := range storage.Spec.Offers {
		if isFree[o.Volume] {
			all = append(all, o.PersistentVolume)
		}
	}
	return all
}

// soonest returns the shorter of two pauses. A pause of 0 or less counts as none.
func soonest(a, b time.Duration) time.Duration {
	switch {
	case a <= 0:
		return max(0, b)
	case b <= 0:
		return a
	}
	return min(a, b)
}

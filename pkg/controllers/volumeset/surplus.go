package volumeset

import "time"

// isDue reports whether a set's surplus has been borne for long enough, and else how long it still is.
func (r *reconciler) isDue(set string) (due bool, wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	since, ok := r.surplus[set]
	if !ok {
		return false, 0
	}
	wait = r.patient - r.now().Sub(since)
	return wait <= 0, max(0, wait)
}

// bear notes whether a set has a surplus, and reports whether that is new.
func (r *reconciler) bear(set string, surplus bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, before := r.surplus[set]
	switch {
	case surplus && !before:
		r.surplus[set] = r.now()
	case !surplus:
		delete(r.surplus, set)
	}
	return surplus && !before
}

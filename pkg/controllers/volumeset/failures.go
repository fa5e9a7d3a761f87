package volumeset

import (
	"fmt"
	"maps"
	"time"
)

// failure records why the last attempts for a set failed in a place.
type failure struct {
	err   error
	slot  string
	at    time.Time
	times int       // refusals in a row
	until time.Time // no new slot before this time
}

// failures holds the failures of a set by place: a full zone says nothing about other zones.
type failures map[string]failure

// key returns a text that identifies a place.
func (p place) key() string { return fmt.Sprint(map[string]string(p)) }

// last returns the latest failure. Its error is nil if there is none.
func (f failures) last() (latest failure) {
	for _, one := range f {
		if order := one.at.Compare(latest.at); latest.err == nil || order > 0 || order == 0 && one.slot > latest.slot {
			latest = one
		}
	}
	return latest
}

// room returns how many more volumes may be requested in a place, at most wanted. After a failure there, one request at
// a time tests whether the place works again. Asked is the number of requests under way.
func (f failures) room(p place, now time.Time, wanted, asked int) int {
	switch one, failed := f[p.key()]; {
	case !failed:
		return wanted
	case one.until.After(now):
		return 0
	}
	return max(0, 1-asked)
}

// pause returns the time until the next place may be tried again, or 0 if no place waits.
func (f failures) pause(now time.Time) (soonest time.Duration) {
	for _, one := range f {
		if wait := one.until.Sub(now); wait > 0 && (soonest == 0 || wait < soonest) {
			soonest = wait
		}
	}
	return soonest
}

// forget drops the failures of a set that is gone, so a new set of the same name starts without any.
func (f *filler) forget(set string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.failures, set)
}

// keep drops the failures in places that no longer exist. No request is sent there, so no success would end them.
func (f *filler) keep(set string, places []place) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.failures[set]) == 0 {
		return
	}
	there := make(map[string]bool, len(places))
	for _, p := range places {
		there[p.key()] = true
	}
	maps.DeleteFunc(f.failures[set], func(key string, _ failure) bool { return !there[key] })
}

// failuresOf returns the current failures of a set.
func (f *filler) failuresOf(set string) failures {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.failures[set])
}

// remember notes how an attempt ended. After a refusal the next slot in that place waits, with increasing pauses. A
// success ends a failure if it is of the slot that failed, or of a first request that began after the failure. Other
// successes prove nothing about new volumes: the request began earlier, or the driver found the volume of an earlier
// request.
func (f *filler) remember(key slotKey, begun time.Time, end outcome, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	where := end.place.key()
	last, failed := f.failures[key.set][where]
	if err == nil {
		if failed && end.made && (last.slot == key.slot || end.first && begun.After(last.at)) {
			delete(f.failures[key.set], where)
		}
		return
	}
	f.log.Warn("a volume was not created", "set", key.set, "volume", key.slot, "error", err)
	if !end.asked && !end.lost { // The API server failed.
		return
	}
	last.err, last.slot, last.at = err, key.slot, f.now()
	if end.refused {
		pause := min(lastPause, firstPause<<min(last.times, 10))
		last.times, last.until = last.times+1, last.at.Add(pause)
	}
	if f.failures[key.set] == nil {
		f.failures[key.set] = failures{}
	}
	f.failures[key.set][where] = last
}

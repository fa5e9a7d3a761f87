package volumeset

import (
	"fmt"
	"maps"
	"time"
)

// failure is why the last attempts for a set in a place did not succeed.
type failure struct {
	err   error
	slot  string
	at    time.Time
	times int       // refusals in a row
	until time.Time // no new slot before
}

// failures are those of a set, by place: a zone without room says nothing about another.
type failures map[string]failure

// key is a text by which a place is known.
func (p place) key() string { return fmt.Sprint(map[string]string(p)) }

// last returns the latest failure; its error is nil when nothing is wrong.
func (f failures) last() (latest failure) {
	for _, one := range f {
		if order := one.at.Compare(latest.at); latest.err == nil || order > 0 || order == 0 && one.slot > latest.slot {
			latest = one
		}
	}
	return latest
}

// room is how many volumes more may be asked for in a place, of those wanted: where it has failed, one at a time shows
// whether it works again. So many are being asked for already.
func (f failures) room(p place, now time.Time, wanted, asked int) int {
	switch one, failed := f[p.key()]; {
	case !failed:
		return wanted
	case one.until.After(now):
		return 0
	}
	return max(0, 1-asked)
}

// pause is how long it is until the next place may be tried again; nothing if none waits.
func (f failures) pause(now time.Time) (soonest time.Duration) {
	for _, one := range f {
		if wait := one.until.Sub(now); wait > 0 && (soonest == 0 || wait < soonest) {
			soonest = wait
		}
	}
	return soonest
}

// forget forgets what was wrong with a set that is gone: another of its name begins anew.
func (f *filler) forget(set string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.failures, set)
}

// keep forgets what was wrong in places that are no more: nothing is asked for there, so that nothing else would end
// it.
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

// failuresOf returns what keeps a set from getting volumes now.
func (f *filler) failuresOf(set string) failures {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.failures[set])
}

// remember notes how an attempt ended. After a refusal the next slot in that place waits, ever longer. A success ends
// that if it shows that the driver can do now what it could not: if it is of the slot that failed, or of a first
// request that was begun since. One that was begun before, or that found a volume of an earlier request, says nothing
// about new ones.
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

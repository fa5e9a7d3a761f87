package known

import (
	"sync"
	"time"
)

const (
	// keep is how many things are remembered. Any others are forgotten, in no special order, which costs a request each.
	keep = 10_000
	// age is how long a read is trusted without another read, and how long a thing counts as ended whatever reads show.
	age = 10 * time.Minute
)

// Things remembers the things of one kind, by ID. The zero value is ready for use.
type Things[V any] struct {
	mu     sync.Mutex
	shown  map[string]shown[V]
	ended  map[string]time.Time
	missed map[string]time.Time
}

// shown is a thing as a read showed it, and the time of the read.
type shown[V any] struct {
	value V
	at    time.Time
}

// Show records a thing that a read shows. It returns false for a thing that has ended recently: the read is older than
// the end.
func (t *Things[V]) Show(id string, value V) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.hasEnded(id) {
		return false
	}
	delete(t.missed, id)
	put(&t.shown, id, shown[V]{value, time.Now()})
	return true
}

// Last returns a thing as it was last shown, unless that was too long ago or the thing has ended.
func (t *Things[V]) Last(id string) (value V, ok bool) {
	return t.Lately(id, age)
}

// Lately returns a thing as it was last shown, unless that is longer ago than within or the thing has ended.
func (t *Things[V]) Lately(id string, within time.Duration) (value V, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s, ok := t.shown[id]
	if !ok || time.Since(s.at) > within {
		return value, false
	}
	return s.value, true
}

// Which returns the things, as they were last shown, for which the function returns true.
func (t *Things[V]) Which(is func(V) bool) (found []V) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.shown {
		if time.Since(s.at) <= age && is(s.value) {
			found = append(found, s.value)
		}
	}
	return found
}

// End records that the cloud has confirmed the end of a thing, in answer to a request that changes something.
func (t *Things[V]) End(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.shown, id)
	delete(t.missed, id)
	put(&t.ended, id, time.Now())
}

// Ended reports whether the thing is gone for certain. It may come back once no read can be older than its end.
func (t *Things[V]) Ended(id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.hasEnded(id)
}

func (t *Things[V]) hasEnded(id string) bool {
	at, ended := t.ended[id]
	return ended && time.Since(at) <= age
}

// Miss records that a read does not show the thing, and returns how long no read has shown it. The time is by the
// process's own clock, and outlives the call that began it.
func (t *Things[V]) Miss(id string) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	since, ok := t.missed[id]
	if !ok {
		since = time.Now()
		put(&t.missed, id, since)
	}
	return time.Since(since)
}

// Missed reports whether the last read of the thing did not show it.
func (t *Things[V]) Missed(id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, missed := t.missed[id]
	return missed
}

// put makes room in a map and adds a value.
func put[V any](m *map[string]V, id string, value V) {
	if *m == nil {
		*m = map[string]V{}
	}
	for other := range *m {
		if len(*m) < keep {
			break
		}
		delete(*m, other)
	}
	(*m)[id] = value
}

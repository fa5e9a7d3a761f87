package known

import (
	"sync"
	"time"
)

const (
	// keep is how many things are remembered. More are forgotten in no special order, which costs a request.
	keep = 10_000
	// age is how long what a read showed is believed without another read, and that a thing has ended whatever reads
	// show.
	age = 10 * time.Minute
)

// Things remembers the things of one kind, by ID. The zero value is ready for use.
type Things[V any] struct {
	mu     sync.Mutex
	shown  map[string]shown[V]
	ended  map[string]time.Time
	missed map[string]time.Time
}

// shown is how a read showed a thing, and when.
type shown[V any] struct {
	value V
	at    time.Time
}

// Show takes down what a read shows of a thing. It is false for one that has ended lately: the read is older than that.
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

// Last is how a thing was shown last, unless that was long ago or it has ended.
func (t *Things[V]) Last(id string) (value V, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s, ok := t.shown[id]
	if !ok || time.Since(s.at) > age {
		return value, false
	}
	return s.value, true
}

// Which are the things, as they were shown last, for which the function is true.
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

// End is for a thing of which the cloud has said, in answer to a request that changes something, that it is gone.
func (t *Things[V]) End(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.shown, id)
	delete(t.missed, id)
	put(&t.ended, id, time.Now())
}

// Ended reports whether the thing is gone for certain. It may come back when no read can be older than its end.
func (t *Things[V]) Ended(id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.hasEnded(id)
}

func (t *Things[V]) hasEnded(id string) bool {
	at, ended := t.ended[id]
	return ended && time.Since(at) <= age
}

// Miss takes down that a read does not show the thing, and returns for how long none has. It is the process's own clock
// that counts, and the time outlives the call that began it.
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

// put makes room in a map and puts something into it.
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

package token

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"sync"
	"time"
)

// keep is how many names' turns are remembered. More are forgotten in no special order, which costs a walk.
const keep = 10_000

// Tokens gives out tokens. The zero value is ready for use.
type Tokens struct {
	mu    sync.Mutex
	turns map[string]int // of names that are not at their first token
	// doubts is since when it is known of a token that something has it that does not show.
	doubts map[string]time.Time
	lost   map[string]time.Time // when a request with the token got no answer last
}

// Lose is for a request with the token that got no answer: it may have made something, or make it yet.
func (t *Tokens) Lose(token string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lost == nil {
		t.lost = map[string]time.Time{}
	}
	forget(t.lost)
	t.lost[token] = time.Now()
}

// Lost reports whether a request with the token has got no answer in the time before now.
func (t *Tokens) Lost(token string, within time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	at, lost := t.lost[token]
	return lost && time.Since(at) < within
}

// Doubt notes that something has the token that the cloud does not show, and returns since when that is known. It
// outlives the call that found it out: a doubt that is resolved by time alone must not begin anew with each call.
func (t *Tokens) Doubt(token string) (since time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.doubts == nil {
		t.doubts = map[string]time.Time{}
	}
	since, ok := t.doubts[token]
	if !ok {
		since = time.Now()
		forget(t.doubts)
		t.doubts[token] = since
	}
	return since
}

// forget makes room in a map.
func forget[V any](m map[string]V) {
	for key := range m {
		if len(m) < keep {
			return
		}
		delete(m, key)
	}
}

// Of returns the present token of a name: 64 hexadecimal digits, which is as long as EC2 allows.
func (t *Tokens) Of(name string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.of(name)
}

func (t *Tokens) of(name string) string {
	sum := sha256.Sum256([]byte(strconv.Itoa(t.turns[name]) + "/" + name))
	return hex.EncodeToString(sum[:])
}

// Turn moves the name on from a token that can make nothing more. It does nothing when the name's present token is
// another one already, so that two who find the same token dead turn it once.
func (t *Tokens) Turn(name, dead string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of(name) != dead {
		return
	}
	if t.turns == nil {
		t.turns = map[string]int{}
	}
	forget(t.turns)
	delete(t.doubts, dead)
	delete(t.lost, dead)
	t.turns[name]++
}

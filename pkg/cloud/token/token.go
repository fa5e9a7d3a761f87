package token

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"sync"
	"time"
)

// keep is how many entries each map of Tokens holds. Others are forgotten, in no special order. A name whose turns are
// forgotten starts again at its first token.
const keep = 10_000

// Tokens makes tokens. The zero value is ready for use.
type Tokens struct {
	mu    sync.Mutex
	turns map[string]int // of names past their first token
	// doubts is when it became known that a thing that does not show has used a token.
	doubts map[string]time.Time
	lost   map[string]time.Time // when a request with the token last got no answer
	// promised is the ID of what the cloud has said that it is creating for a token.
	promised map[string]string
}

// Promise records that the cloud has accepted a request with the token, and the ID of the thing that it is creating. An
// empty ID records that the cloud has shown the end of the creation.
func (t *Tokens) Promise(token, id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if id == "" {
		delete(t.promised, token)
		return
	}
	if t.promised == nil {
		t.promised = map[string]string{}
	}
	forget(t.promised)
	t.promised[token] = id
}

// Promised returns the ID of the thing that the cloud is creating for the token. It returns false once the cloud has
// shown the end of the creation, and for the request of another process.
func (t *Tokens) Promised(token string) (id string, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	id, ok = t.promised[token]
	return id, ok
}

// Lose records that a request with the token got no answer: it may have created something, or may still do so.
func (t *Tokens) Lose(token string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lost == nil {
		t.lost = map[string]time.Time{}
	}
	forget(t.lost)
	t.lost[token] = time.Now()
}

// Lost reports whether a request with the token was lost less than within ago.
func (t *Tokens) Lost(token string, within time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	at, lost := t.lost[token]
	return lost && time.Since(at) < within
}

// Doubt records that a thing that the cloud does not show has used the token, and returns when this became known. The
// time outlives the call: a doubt that only time resolves must not start anew with each call.
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

// Turn moves the name on from a token that can create nothing more. It does nothing if the name already has another
// token, so two callers that find the same dead token turn it once.
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
	delete(t.promised, dead)
	t.turns[name]++
}

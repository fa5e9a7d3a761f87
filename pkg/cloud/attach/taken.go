package attach

import (
	"slices"
	"sync"
	"time"
)

// taken caches each node's device names for a while, so that many volumes for one node need one request.
type taken struct {
	mu    sync.Mutex
	nodes map[string]listing
}

type listing struct {
	names []string
	at    time.Time // when the cloud was asked
}

// names returns a node's device names, unless the cloud's list is too old.
func (t *taken) names(node string, longest time.Duration) ([]string, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for other, l := range t.nodes {
		if time.Since(l.at) >= longest {
			delete(t.nodes, other)
		}
	}
	l, ok := t.nodes[node]
	return l.names, ok
}

// list records the cloud's list of a node's names.
func (t *taken) list(node string, names []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.nodes == nil {
		t.nodes = map[string]listing{}
	}
	t.nodes[node] = listing{names, time.Now()}
}

// add records a newly assigned name.
func (t *taken) add(node, name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l, ok := t.nodes[node]; ok {
		l.names = append(slices.Clone(l.names), name) // Other goroutines may be reading the old slice.
		t.nodes[node] = l
	}
}

// forget drops a node's list after the cloud has refused a name there.
func (t *taken) forget(node string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.nodes, node)
}

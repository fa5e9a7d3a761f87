package attach

import (
	"slices"
	"sync"
	"time"
)

// taken remembers for a while which device names nodes have, so that many volumes for one node need one question.
type taken struct {
	mu    sync.Mutex
	nodes map[string]listing
}

type listing struct {
	names []string
	at    time.Time // when the cloud was asked
}

// names are those of a node, unless the cloud was asked too long ago.
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

// list takes down what the cloud said.
func (t *taken) list(node string, names []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.nodes == nil {
		t.nodes = map[string]listing{}
	}
	t.nodes[node] = listing{names, time.Now()}
}

// add takes down that a name was given.
func (t *taken) add(node, name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l, ok := t.nodes[node]; ok {
		l.names = append(slices.Clone(l.names), name) // Others may be reading the old ones.
		t.nodes[node] = l
	}
}

// forget is for a node where a name was refused.
func (t *taken) forget(node string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.nodes, node)
}

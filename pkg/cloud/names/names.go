package names

import (
	"slices"
	"sync"

	"github.com/stowage-csi/stowage/pkg/failure"
)

// Allocator chooses names on many nodes.
type Allocator struct {
	candidates []string

	mu    sync.Mutex
	nodes map[string]*node
}

// node is what is known about one node besides the cloud's answer.
type node struct {
	reserved map[string]bool
	last     map[string]int // when a name was last chosen, as a count of choices
	choices  int
}

// New returns an Allocator that chooses from the candidates.
func New(candidates []string) *Allocator {
	return &Allocator{candidates: slices.Clone(candidates), nodes: map[string]*node{}}
}

// Reserve chooses a name that is not taken according to the cloud, not reserved and not to be avoided. It reserves the
// name until release is called, once the cloud lists the name or nothing was attached. Of all free names, it chooses
// the least recently used one. Kinds: Exhausted when there is none.
func (a *Allocator) Reserve(on string, taken, avoid []string) (name string, release func(), err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	n, ok := a.nodes[on]
	if !ok {
		a.forget()
		n = &node{reserved: map[string]bool{}, last: map[string]int{}}
		a.nodes[on] = n
	}
	for _, candidate := range a.candidates {
		if n.reserved[candidate] || slices.Contains(taken, candidate) || slices.Contains(avoid, candidate) {
			continue
		}
		if name == "" || n.last[candidate] < n.last[name] {
			name = candidate
		}
	}
	if name == "" {
		return "", nil, failure.Errorf(failure.Exhausted,
			"node %q has none of its %d device names left: detach a volume there", on, len(a.candidates))
	}
	n.choices++
	n.last[name], n.reserved[name] = n.choices, true
	return name, sync.OnceFunc(func() { a.release(on, name) }), nil
}

// keep is how many idle nodes are remembered: nodes come and go for years.
const keep = 1000

// forget makes room for another node.
func (a *Allocator) forget() {
	for other, n := range a.nodes {
		if len(a.nodes) < keep {
			return
		}
		if len(n.reserved) == 0 {
			delete(a.nodes, other)
		}
	}
}

func (a *Allocator) release(on, name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.nodes[on].reserved, name)
}

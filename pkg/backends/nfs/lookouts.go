package nfs

import "sync"

// mostLeft is how many names of a share are remembered from one look to the next. Where there are more, this
// process helps at once.
const mostLeft = 10_000

// lookouts are the looks at the shares. Each share has its own: one that takes long holds up no other.
type lookouts struct {
	mu    sync.Mutex
	under map[string]bool            // the shares at which somebody looks, by the keys of their places
	lying map[string]map[string]bool // what lay on each at the last look that has not failed
}

// begin reports whether a look at the share at a place may begin: none is under way.
func (l *lookouts) begin(p place) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.under == nil {
		l.under, l.lying = map[string]bool{}, map[string]map[string]bool{}
	}
	if l.under[p.key()] {
		return false
	}
	l.under[p.key()] = true
	return true
}

// end notes that a look has ended, whichever way.
func (l *lookouts) end(p place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.under, p.key())
}

// again notes the names that lie on the share at a place, and reports whether one of them lay there at the look before.
func (l *lookouts) again(p place, names []string) (before bool) {
	now := map[string]bool{}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range names[:min(len(names), mostLeft)] {
		now[name] = true
		before = before || l.lying[p.key()][name]
	}
	l.lying[p.key()] = now
	return before
}

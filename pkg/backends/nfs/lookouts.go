package nfs

import "sync"

// mostLeft is the maximum number of names of a share that are remembered between two looks. If there are more, this
// process helps at once.
const mostLeft = 10_000

// lookouts are the looks at the shares. Each share has its own, so a slow look does not delay others.
type lookouts struct {
	mu    sync.Mutex
	under map[string]bool            // the shares with a look under way, by the keys of their places
	lying map[string]map[string]bool // the names on each share at the last successful look
}

// begin reports whether a look at the share at a place may begin, that is, none is under way.
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

// end notes that a look has ended, successfully or not.
func (l *lookouts) end(p place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.under, p.key())
}

// again notes the names on the share at a place, and reports whether one of them was there at the previous look.
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

package background

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/stowage-csi/stowage/pkg/failure"
)

// Group is work whose outcome no call needs. The caller cancels it by a context of its own. The zero value is ready for
// use.
type Group struct {
	mu    sync.Mutex
	under map[chan struct{}]string // names, by the channel that is closed when the work has ended
}

// Go begins work. The name says what is done to which object, as that of a Work: errors contain it.
func (g *Group) Go(name string, do func()) {
	ended := make(chan struct{})
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.under == nil {
		g.under = map[chan struct{}]string{}
	}
	g.under[ended] = name
	go func() {
		defer g.end(ended)
		do()
	}()
}

func (g *Group) end(ended chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.under, ended)
	close(ended)
}

// Wait returns when no work is under way. Kinds: Busy, naming what has not ended by the end of the context.
func (g *Group) Wait(ctx context.Context) error {
	for ctx.Err() == nil {
		next := g.next()
		if next == nil {
			return nil
		}
		select {
		case <-next:
		case <-ctx.Done():
		}
	}
	return left(g.names())
}

// next returns a channel that is closed when one work under way has ended; nil if there is none.
func (g *Group) next() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	for ended := range g.under {
		return ended
	}
	return nil
}

func (g *Group) names() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Collect(maps.Values(g.under))
}

// mostNamed is how many works an error names.
const mostNamed = 10

// left returns the error for works that have not ended in time; nil if all have. Kinds: Busy.
func left(works []string) error {
	if len(works) == 0 {
		return nil
	}
	slices.Sort(works)
	more := ""
	if n := len(works) - mostNamed; n > 0 {
		works, more = works[:mostNamed], fmt.Sprintf("; and %d more", n)
	}
	return failure.Errorf(failure.Busy, "not ended in time: %s%s", strings.Join(works, "; "), more)
}

package deadline

import (
	"context"
	"sync"
	"time"

	"github.com/stowage-csi/stowage/pkg/failure"
)

// Calls knows the calls that are under way, and which of them were given up. The zero value is ready for use. It
// belongs to an object that lives as long as the process, and is passed in the contexts of its requests, as their
// deadlines are.
type Calls struct {
	mu    sync.Mutex
	under map[string]*running
}

// running is one call that has not ended.
type running struct {
	name    string
	since   time.Time
	ended   chan struct{}
	givenUp bool
}

// key is the key for Calls in a context.
type key struct{}

// With returns a context in which Do finds c. Without one Do gives up all the same, but does not know which calls were
// given up before.
func (c *Calls) With(ctx context.Context) context.Context { return context.WithValue(ctx, key{}, c) }

// from returns the Calls of a context, or nil.
func from(ctx context.Context) *Calls {
	c, _ := ctx.Value(key{}).(*Calls)
	return c
}

// GivenUp returns how many calls were given up and have not returned. Each keeps a thread.
func (c *Calls) GivenUp() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	count := 0
	for _, r := range c.under {
		if r.givenUp {
			count++
		}
	}
	return count
}

// UnderWay reports whether a call on the thing has not ended: its caller waits for it, or has given it up.
func (c *Calls) UnderWay(on string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.under[on] != nil
}

// begin records a call, once no other on the same thing is under way. Kinds: Unavailable when the other was given up,
// or the context ends first.
func (c *Calls) begin(ctx context.Context, call Call) (*running, error) {
	r := &running{name: call.Name, since: time.Now(), ended: make(chan struct{})}
	if c == nil {
		return r, nil
	}
	for {
		other := c.enter(call.on(), r)
		if other == nil {
			return r, nil
		}
		if c.isGivenUp(other) {
			return nil, other.refusal()
		}
		select {
		case <-other.ended:
		case <-ctx.Done():
			return nil, failure.Errorf(failure.Unavailable, "waiting for an earlier call (%s, begun at %s): %w", other.name,
				other.began(), ctx.Err())
		}
	}
}

// enter records a call unless another on the same thing is under way, which it then returns.
func (c *Calls) enter(on string, r *running) (other *running) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if other = c.under[on]; other != nil {
		return other
	}
	if c.under == nil {
		c.under = map[string]*running{}
	}
	c.under[on] = r
	return nil
}

func (c *Calls) isGivenUp(r *running) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return r.givenUp
}

// giveUp records that the caller no longer waits for the call.
func (c *Calls) giveUp(r *running) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r.givenUp = true
}

// end forgets a call.
func (c *Calls) end(on string, r *running) {
	if c == nil {
		return
	}
	c.mu.Lock()
	delete(c.under, on)
	c.mu.Unlock()
	close(r.ended)
}

func (r *running) began() string { return r.since.UTC().Format(time.RFC3339) }

func (r *running) refusal() error {
	return failure.Errorf(failure.Unavailable,
		"an earlier call (%s, begun at %s) was given up and has not ended yet: nothing more is begun until it has",
		r.name, r.began())
}

package flight

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Cause is the last failure of an operation's requests. A caller that leaves before the operation has ended gets it as
// the reason. It is a text: a later request may have succeeded, so nothing may be decided by it. The zero value is
// ready for use.
type Cause struct {
	mu  sync.Mutex
	err error
	at  time.Time
}

// watch is a Cause in the context of an operation.
type watch struct {
	cause *Cause
	outer *watch // of the operation that waits for this one
}

// watchKey is the key for the watch in the context of an operation.
type watchKey struct{}

// Watch returns a context whose failures Because records in the Cause, and in those of ctx.
func (c *Cause) Watch(ctx context.Context) context.Context {
	outer, _ := ctx.Value(watchKey{}).(*watch)
	return context.WithValue(ctx, watchKey{}, &watch{c, outer})
}

// Because records the failure of a request for all operations that wait for it, unless it is nil.
func Because(ctx context.Context, err error) {
	if err == nil {
		return
	}
	for w, _ := ctx.Value(watchKey{}).(*watch); w != nil; w = w.outer {
		w.cause.set(err)
	}
}

// Clear forgets the last failure.
func (c *Cause) Clear() { c.set(nil) }

func (c *Cause) set(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err, c.at = err, time.Now()
}

// Last returns the end of a sentence with the last failure; empty if there was none.
func (c *Cause) Last() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		return ""
	}
	return fmt.Sprintf("; the last failure, %v before: %v", time.Since(c.at).Round(time.Millisecond), c.err)
}

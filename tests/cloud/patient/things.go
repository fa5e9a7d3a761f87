package patient

import (
	"context"
	"sync"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// names holds the names of creations in progress.
type names struct {
	mu   sync.Mutex
	held map[string]chan struct{}
}

// hold waits for its turn with a name. It waits on a channel, because simulated time does not advance while a goroutine
// waits for a mutex.
func (n *names) hold(ctx context.Context, name string) (release func(), err error) {
	n.mu.Lock()
	if n.held == nil {
		n.held = map[string]chan struct{}{}
	}
	turn, ok := n.held[name]
	if !ok {
		turn = make(chan struct{}, 1)
		n.held[name] = turn
	}
	n.mu.Unlock()
	select {
	case turn <- struct{}{}:
		return func() { <-turn }, nil
	case <-ctx.Done():
		return nil, backends.Errorf(backends.Unavailable, "%q is being made: %w", name, ctx.Err())
	}
}

// create creates a named resource unless it exists. A resource that a repeated call finds is the requested one. If it
// has been deleted in the meantime, the call must be repeated, as package volume tells its callers.
func create[T any](ctx context.Context, m Manner, n *names, name string, find,
	call func(ctx context.Context) (T, error)) (none T, err error) {
	release, err := n.hold(ctx, name)
	if err != nil {
		return none, err
	}
	defer release()
	_, err = must(ctx, m, find)
	if err == nil {
		return none, backends.Errorf(backends.Exists, "there is %q already", name)
	}
	if !backends.Is(err, backends.NotFound) {
		return none, err
	}
	repeated := false
	return must(ctx, m, func(ctx context.Context) (T, error) {
		made, err := call(ctx)
		if !repeated || !backends.Is(err, backends.Exists) {
			repeated = true
			return made, err
		}
		if made, err = find(ctx); backends.Is(err, backends.NotFound) {
			err = backends.Errorf(backends.Busy, "%q was deleted while it was being created: %w", name, err)
		}
		return made, err
	})
}

// remove deletes an existing resource. Once the resource was seen, NotFound counts as success: a request may arrive
// twice.
func remove[T any](ctx context.Context, m Manner, handle string,
	get func(ctx context.Context, handle string) (T, error), call func(ctx context.Context, handle string) error) error {
	if _, err := must(ctx, m, func(ctx context.Context) (T, error) { return get(ctx, handle) }); err != nil {
		return err
	}
	err := do(ctx, m, func(ctx context.Context) error { return call(ctx, handle) })
	if backends.Is(err, backends.InUse) {
		pause(ctx, m.Limit) // Earlier requests may arrive late, and are refused only while the resource is in use.
	}
	if backends.Is(err, backends.NotFound) {
		return nil
	}
	return err
}

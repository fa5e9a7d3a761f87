package patient

import (
	"context"
	"sync"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// names are those under which something is being made.
type names struct {
	mu   sync.Mutex
	held map[string]chan struct{}
}

// hold waits for its turn with a name. It waits at a channel, since simulated time stands still for who waits at a
// mutex.
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

// create makes what has a name, unless it is there. What a repeated call finds there is what was asked for; if that has
// been deleted meanwhile, the call is to be repeated, as package volume tells its callers.
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

// remove deletes what is there. Once it was seen there, NotFound is as good as any other success: a request may arrive
// twice.
func remove[T any](ctx context.Context, m Manner, handle string,
	get func(ctx context.Context, handle string) (T, error), call func(ctx context.Context, handle string) error) error {
	if _, err := must(ctx, m, func(ctx context.Context) (T, error) { return get(ctx, handle) }); err != nil {
		return err
	}
	err := do(ctx, m, func(ctx context.Context) error { return call(ctx, handle) })
	if backends.Is(err, backends.InUse) {
		pause(ctx, m.Limit) // What was asked for before may arrive late, and is refused as long as the thing is in use.
	}
	if backends.Is(err, backends.NotFound) {
		return nil
	}
	return err
}

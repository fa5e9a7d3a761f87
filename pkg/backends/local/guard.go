package local

import (
	"context"
	"sync/atomic"

	"golang.org/x/sync/semaphore"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// everyone is more than will ever share a guard.
const everyone = 1 << 40

// guard orders what is done to one volume or snapshot: many may share it, or one may own it. First come,
// first served; and unlike a sync.RWMutex it stops waiting when the context ends.
type guard struct {
	tokens *semaphore.Weighted
	gone   atomic.Bool // what is guarded was deleted; set by an owner
}

func newGuard() *guard { return &guard{tokens: semaphore.NewWeighted(everyone)} }

// share keeps owners out until release is called. Kinds: NotFound when it was deleted; Busy when the context
// ends first.
func (g *guard) share(ctx context.Context) (release func(), err error) { return g.take(ctx, 1) }

// own keeps everybody else out until release is called. Kinds: as share.
func (g *guard) own(ctx context.Context) (release func(), err error) { return g.take(ctx, everyone) }

// ownNow keeps everybody else out until release is called, unless somebody has it, or it was deleted.
func (g *guard) ownNow() (release func(), ok bool) { return g.takeNow(everyone) }

// shareNow keeps owners out until release is called, unless there is one, or it was deleted.
func (g *guard) shareNow() (release func(), ok bool) { return g.takeNow(1) }

func (g *guard) takeNow(n int64) (release func(), ok bool) {
	if !g.tokens.TryAcquire(n) {
		return nil, false
	}
	release = func() { g.tokens.Release(n) }
	if g.gone.Load() {
		release()
		return nil, false
	}
	return release, true
}

func (g *guard) take(ctx context.Context, n int64) (func(), error) {
	if err := g.tokens.Acquire(ctx, n); err != nil {
		return nil, backends.Errorf(backends.Busy, "another operation on it did not end in time: ask again: %w", err)
	}
	if g.gone.Load() {
		g.tokens.Release(n)
		return nil, backends.Errorf(backends.NotFound, "it was deleted just now")
	}
	return func() { g.tokens.Release(n) }, nil
}

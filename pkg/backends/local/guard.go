package local

import (
	"context"
	"sync/atomic"

	"golang.org/x/sync/semaphore"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// everyone is more than the number of holders that ever share a guard.
const everyone = 1 << 40

// guard orders the operations on one volume or snapshot: many may share it, or one may own it, first come, first
// served. Unlike a sync.RWMutex it stops waiting when the context ends.
type guard struct {
	tokens *semaphore.Weighted
	gone   atomic.Bool // the guarded item was deleted; set by an owner
}

func newGuard() *guard { return &guard{tokens: semaphore.NewWeighted(everyone)} }

// share keeps owners out until release is called. Kinds: NotFound when the item was deleted; Busy when the context ends
// first.
func (g *guard) share(ctx context.Context) (release func(), err error) { return g.take(ctx, 1) }

// own keeps all others out until release is called. Kinds: as share.
func (g *guard) own(ctx context.Context) (release func(), err error) { return g.take(ctx, everyone) }

// ownNow is own without waiting. It fails if the guard is held or the item was deleted.
func (g *guard) ownNow() (release func(), ok bool) { return g.takeNow(everyone) }

// shareNow is share without waiting. It fails if an owner holds the guard or the item was deleted.
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

package filesystem

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// Turns bound how many filesystems are made, checked or repaired at the same time: mkfs and e2fsck need
// memory in proportion to the size of the disk, and a node that restarts stages all its volumes at once.
type Turns struct {
	free chan struct{} // holds one element for each turn that is taken
	work atomic.Int64  // how many there are at work
}

// NewTurns allows so many at the same time, at least one.
func NewTurns(most int) *Turns { return &Turns{free: make(chan struct{}, max(most, 1))} }

// turnsKey is where a context carries the Turns.
type turnsKey struct{}

// WithTurns makes Format, Check, GrowOffline and Recover wait for their turn. Without it none waits.
func WithTurns(ctx context.Context, turns *Turns) context.Context {
	return context.WithValue(ctx, turnsKey{}, turns)
}

// turn is one that was taken. It is over when nobody holds it any more: neither the call that took it nor
// a tool that was started in it, which may outlive the call.
type turn struct {
	turns   *Turns
	mu      sync.Mutex
	holders int
}

// takeTurn waits for a turn to work on a device; nil where turns are not bounded. Kinds: Unavailable when
// the context ended first.
func takeTurn(ctx context.Context, path string) (*turn, error) {
	turns, _ := ctx.Value(turnsKey{}).(*Turns)
	if turns == nil {
		return nil, nil
	}
	return turns.take(ctx, path)
}

// Take waits for a turn to work on a device, and returns what gives it back. Kinds: Unavailable when the
// context ended first.
func (turns *Turns) Take(ctx context.Context, path string) (release func(), err error) {
	taken, err := turns.take(ctx, path)
	if err != nil {
		return nil, err
	}
	return sync.OnceFunc(taken.release), nil
}

func (turns *Turns) take(ctx context.Context, path string) (*turn, error) {
	err := ctx.Err()
	if err == nil {
		select {
		case turns.free <- struct{}{}:
			turns.work.Add(1)
			return &turn{turns: turns, holders: 1}, nil
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	return nil, backends.Errorf(backends.Unavailable, "%s has to wait for its turn: %d others are being formatted or checked on this node, and at most %d may be at the same time: %w",
		path, turns.work.Load(), cap(turns.free), err)
}

// keep holds the turn once more, until the function that it returns is called.
func (t *turn) keep() (release func()) {
	if t == nil {
		return func() {}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.holders++
	return sync.OnceFunc(t.release)
}

// release lets go of the turn. With the last holder it is somebody else's.
func (t *turn) release() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.holders--; t.holders == 0 {
		t.turns.work.Add(-1)
		<-t.turns.free
	}
}

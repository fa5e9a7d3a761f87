package filesystem

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// Tools run mkfs, e2fsck and resize2fs, for so many filesystems at the same time: they need memory in proportion
// to the size of the disk, and a node that restarts stages all its volumes at once. A nil *Tools has no bound.
type Tools struct {
	free chan struct{} // holds one element for each turn that is taken
	work atomic.Int64  // how many there are at work
}

// NewTools allows so many at the same time, at least one.
func NewTools(most int) *Tools { return &Tools{free: make(chan struct{}, max(most, 1))} }

// turn is one that was taken. It is over when nobody holds it any more: neither the call that took it nor
// a tool that was started in it, which may outlive the call.
type turn struct {
	tools   *Tools
	mu      sync.Mutex
	holders int
}

// take waits for a turn to work on a device; nil where there is no bound. Kinds: Unavailable when the context
// ended first.
func (t *Tools) take(ctx context.Context, path string) (*turn, error) {
	if t == nil {
		return nil, nil
	}
	err := ctx.Err()
	if err == nil {
		select {
		case t.free <- struct{}{}:
			t.work.Add(1)
			return &turn{tools: t, holders: 1}, nil
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	return nil, backends.Errorf(backends.Unavailable, "%s has to wait for its turn: %d others are being formatted or checked on this node, and at most %d may be at the same time: %w",
		path, t.work.Load(), cap(t.free), err)
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
		t.tools.work.Add(-1)
		<-t.tools.free
	}
}

package filesystem

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// Tools run mkfs, e2fsck and resize2fs for a bounded number of filesystems at the same time: these tools need memory in
// proportion to the size of the disk, and a node that restarts stages all its volumes at once. A tool that hangs on one
// device yields its turn to those of other devices. A nil *Tools has no bound.
type Tools struct {
	free chan struct{} // holds one element for each taken turn
	work atomic.Int64  // number of turns at work
	idle atomic.Int64  // number of these that yielded to others
	// patience is how long an idle holder keeps its turn. It is checked looks times in that period.
	patience time.Duration

	mu    sync.Mutex
	turns map[string]*turn // by the path of the device
}

const (
	// toolPatience is longer than a tool on a working disk waits for one answer.
	toolPatience = 30 * time.Second
	looks        = 5
	// mostIdle bounds, per turn, how many holders may have yielded: a tool that hangs keeps its memory.
	mostIdle = 8
)

// NewTools allows so many turns at the same time, at least one.
func NewTools(most int) *Tools {
	return &Tools{free: make(chan struct{}, max(most, 1)), patience: toolPatience, turns: map[string]*turn{}}
}

// take waits for a turn to work on a device; nil if there is no bound. Kinds: Unavailable when the context ended first.
func (t *Tools) take(ctx context.Context, path string) (*turn, error) {
	if t == nil {
		return nil, nil
	}
	n := newTurn(t, path)
	err := ctx.Err()
	if err == nil {
		select {
		case t.free <- struct{}{}:
			t.work.Add(1)
			n.taken.Store(true)
			go n.watch()
			return n, nil
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	n.forget()
	return nil, backends.Errorf(backends.Unavailable, "%s has to wait for its turn: %s: %w", path, t.queue(), err)
}

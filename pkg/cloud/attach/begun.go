package attach

import (
	"context"
	"sync"
	"time"

	"github.com/stowage-csi/stowage/pkg/cloud/flight"
	"github.com/stowage-csi/stowage/pkg/failure"
)

// begun remembers requests whose effect the cloud may not show yet.
type begun struct {
	settle time.Duration

	mu sync.Mutex
	at map[key]times
}

// key is the volume and node of a request to attach or to detach.
type key struct{ volume, node string }

// times has the times of the last requests: asked if the outcome is not known yet, lost if the request got no answer
// and may still arrive, last for any request. Reads may be older than last. A request may wait for its turn after
// asked, so that lost is the time when it was given up.
type times struct{ asked, lost, last time.Time }

// note records a request, and forgets those whose effect the cloud shows by now.
func (b *begun) note(volume, node string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.at == nil {
		b.at = map[key]times{}
	}
	for k, t := range b.at {
		if time.Since(t.last) > b.settle {
			delete(b.at, k)
		}
	}
	t := b.at[key{volume, node}]
	t.asked, t.last = time.Now(), time.Now()
	b.at[key{volume, node}] = t
}

// lately reports whether the last request is so recent that a read may be older, whatever its outcome.
func (b *begun) lately(volume, node string) bool {
	return b.longest(volume, node, func(t times) time.Time { return t.last }) > 0
}

// late returns how much longer a lost request may still arrive.
func (b *begun) late(volume, node string) time.Duration {
	return b.longest(volume, node, func(t times) time.Time { return t.lost })
}

// lose records that a request got no answer: it may arrive late.
func (b *begun) lose(volume, node string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	b.at[key{volume, node}] = times{lost: now, last: now}
}

// forget records that the cloud has told the outcome of a request.
func (b *begun) forget(volume, node string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t, ok := b.at[key{volume, node}]; ok {
		t.asked = time.Time{}
		b.at[key{volume, node}] = t
	}
}

// longest returns how much longer a request to the node can matter, counted from the time that which returns. An empty
// node means any node. A request that named no node counts for each node.
func (b *begun) longest(volume, node string, which func(times) time.Time) (left time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for k, t := range b.at {
		if k.volume == volume && (node == "" || k.node == "" || k.node == node) {
			left = max(left, b.settle-time.Since(which(t)))
		}
	}
	return left
}

// left returns how much longer a request for the volume and the node may take effect unseen.
func (b *begun) left(volume, node string) time.Duration {
	return max(b.late(volume, node), b.longest(volume, node, func(t times) time.Time { return t.asked }))
}

// wait waits until no lost request can take effect any more. Kinds: Busy when the context ends first.
func (b *begun) wait(ctx context.Context, volume, node string) error {
	left := b.left(volume, node)
	if left <= 0 {
		return nil
	}
	why := failure.Errorf(failure.Busy,
		"the cloud has not answered an earlier request to detach volume %q from node %q, which may still arrive: it is "+
			"attached again in %v", volume, node, left.Round(time.Second))
	flight.Because(ctx, why)
	select {
	case <-time.After(left):
		return nil
	case <-ctx.Done():
		return failure.Errorf(failure.Busy, "%w: %w", why, context.Cause(ctx))
	}
}

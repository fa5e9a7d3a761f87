package attach

import (
	"context"
	"sync"
	"time"

	"github.com/stowage-csi/stowage/pkg/failure"
)

// begun remembers the requests whose effect the cloud may not show yet.
type begun struct {
	settle time.Duration

	mu sync.Mutex
	at map[key]times
}

// key is a connection that was asked for, or its end.
type key struct{ volume, node string }

// times are when the last request of a kind was sent. One that was answered is shown soon; one that was lost may yet be
// on its way, whatever later ones have led to. The last one of all is what reads may be older than.
type times struct{ asked, lost, last time.Time }

// note takes down a request, and forgets those that are shown by now.
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

// lately reports whether a request was sent so lately, whatever came of it, that a read may be older.
func (b *begun) lately(volume, node string) bool {
	return b.longest(volume, node, func(t times) time.Time { return t.last }) > 0
}

// late is for how long a request that was lost may still arrive.
func (b *begun) late(volume, node string) time.Duration {
	return b.longest(volume, node, func(t times) time.Time { return t.lost })
}

// lose is for a request that got no answer: it may arrive late.
func (b *begun) lose(volume, node string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.at[key{volume, node}]
	t.asked, t.lost = time.Time{}, t.asked
	b.at[key{volume, node}] = t
}

// forget is for a request of which the cloud has said what came of it.
func (b *begun) forget(volume, node string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t, ok := b.at[key{volume, node}]; ok {
		t.asked = time.Time{}
		b.at[key{volume, node}] = t
	}
}

// longest is how much is left of the time in which such a request to the node, any node if that is empty, can matter.
// One that named no node is to each of them.
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

// left is for how long a request for the volume and the node may still take effect unseen.
func (b *begun) left(volume, node string) time.Duration {
	return max(b.late(volume, node), b.longest(volume, node, func(t times) time.Time { return t.asked }))
}

// wait waits until no request that was lost can take effect any more. Kinds: Busy when the context ends first.
func (b *begun) wait(ctx context.Context, volume, node string) error {
	left := b.left(volume, node)
	if left <= 0 {
		return nil
	}
	select {
	case <-time.After(left):
		return nil
	case <-ctx.Done():
		return failure.Errorf(failure.Busy,
			"the cloud has not answered an earlier request to detach volume %q from node %q, which may still arrive: it is "+
				"attached again in %v: %w",
			volume, node, left.Round(time.Second), context.Cause(ctx))
	}
}

package attach

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/stowage-csi/stowage/pkg/failure"
)

// most is how many keys each map of over holds.
const most = 10_000

// over remembers attachments that have ended. A read that shows one is out of date.
type over struct {
	tick  time.Duration // see Options.Tick
	mu    sync.Mutex
	seen  map[key][]sighting // attachments that may still exist
	ended map[key][]sighting
}

// sighting is when the cloud first showed an attachment. The attachment began no later.
type sighting struct {
	id string
	at time.Time
}

// without records the attachments that a read shows, and removes those that have ended.
func (o *over) without(volume string, v Volume) Volume {
	o.mu.Lock()
	defer o.mu.Unlock()
	v.Attachments = slices.DeleteFunc(slices.Clone(v.Attachments), func(a Attachment) bool {
		k := key{volume, a.Node}
		is := func(s sighting) bool { return s.id == a.ID }
		if a.ID == "" || slices.ContainsFunc(o.seen[k], is) {
			return false
		}
		if slices.ContainsFunc(o.ended[k], is) {
			return true
		}
		put(&o.seen, k, append(o.seen[k], sighting{a.ID, time.Now()}))
		return false
	})
	return v
}

// end records that the cloud denies any attachment of a volume to a node, or to every node if node is empty.
func (o *over) end(volume, node string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for k, sightings := range o.seen {
		if k.volume == volume && (node == "" || k.node == node) {
			delete(o.seen, k)
			put(&o.ended, k, append(o.ended[k], sightings...))
		}
	}
}

// shownSince returns when the cloud first showed the last attachment of a volume to a node, by the process's clock. It
// returns false if the cloud has shown none.
func (o *over) shownSince(volume, node string) (at time.Time, shown bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	sightings := o.seen[key{volume, node}]
	if len(sightings) == 0 {
		return at, false
	}
	return sightings[len(sightings)-1].at, true
}

// wait waits until a new attachment cannot get the ID of an ended one. Kinds: Busy when the context ends first.
func (o *over) wait(ctx context.Context, volume, node string) error {
	left := o.left(volume, node)
	if left <= 0 {
		return nil
	}
	select {
	case <-time.After(left):
		return nil
	case <-ctx.Done():
		return failure.Errorf(failure.Busy, "volume %q was attached to node %q a moment ago: it is attached again in %v: %w",
			volume, node, left, context.Cause(ctx))
	}
}

func (o *over) left(volume, node string) (left time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, s := range o.ended[key{volume, node}] {
		left = max(left, o.tick-time.Since(s.at))
	}
	return left
}

// put stores the last eight sightings of a key, and makes room for them.
func put(m *map[key][]sighting, k key, sightings []sighting) {
	if *m == nil {
		*m = map[key][]sighting{}
	}
	for other := range *m {
		if len(*m) < most {
			break
		}
		delete(*m, other)
	}
	(*m)[k] = sightings[max(0, len(sightings)-8):]
}

package local

import (
	"context"
	"reflect"
	"sync/atomic"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/background"
	"github.com/stowage-csi/stowage/pkg/tree"
)

// mostCopies is how many copies of each sort may be under way at the same time.
const mostCopies = 64

// works are what is made in the background because it takes longer than a call may.
type works struct {
	volumes   *background.Works[*made[*volume]]
	snapshots *background.Works[*made[*snapshot]]
	groups    *background.Works[*made[*group]]
}

func newWorks() works {
	return works{
		background.New[*made[*volume]](mostCopies), background.New[*made[*snapshot]](mostCopies),
		background.New[*made[*group]](mostCopies),
	}
}

// ends are what ends each sort of them. What they have made so far is trash.
func (w works) ends() []func(context.Context) error {
	return []func(context.Context) error{w.volumes.Close, w.snapshots.Close, w.groups.Close}
}

// plan is something that is decided and checked, and is to be made.
type plan[T any] struct {
	work    string // what is done, for messages; empty for what takes no longer than a call
	release func() // lets go of the sources
	make    func(context.Context) (T, error)
}

// made is what became of a plan.
type made[T any] struct {
	item  T
	asked any
	heard atomic.Bool // whether a call was told that it has made the item
}

// making is how something comes to be on its shelf.
type making[T any] struct {
	shelf  *shelf[T]
	handle string
	asked  any // the whole request, to know its repetition by
	decide func(context.Context) (plan[T], error)
	settle func(T)
}

// run reserves the handle, has decided what is to be made and makes it. What takes long goes on when the call ends: it
// holds its sources and the handle to its end, and the next call for the handle waits for it. If that call asks for the
// same, it is told what became of it; to others the item Exists.
//
// Kinds: Exists; Busy while it is being made; those of deciding and making.
func (m making[T]) run(ctx context.Context, works *background.Works[*made[T]]) (T, error) {
	var none T
	earlier, err := works.Join(ctx, m.handle)
	if earlier == nil && err != nil {
		return none, err
	}
	if m.isTold(earlier, err) {
		return earlier.item, err
	}
	if err := m.shelf.reserve(m.handle); err != nil {
		return none, err
	}
	p, err := m.decide(ctx)
	if err != nil {
		m.shelf.abandon(m.handle)
		return none, err
	}
	c := &claim[T]{making: m, release: p.release}
	if p.work == "" {
		defer func() { _ = c.Close() }() // It never fails.
		result, err := c.make(ctx, p)
		return result.item, err
	}
	result, err := works.Do(ctx, background.Work{Key: m.handle, Name: p.work, Holds: c},
		func(ctx context.Context) (*made[T], error) {
			return c.make(ctx, p)
		})
	if err == nil && !m.isTold(result, nil) {
		return none, backends.Errorf(backends.Exists, "another call has made it just now: it is %s", m.handle)
	}
	if err != nil {
		return none, err
	}
	return result.item, nil
}

// isTold reports whether the outcome is that of the same request: every call of it hears of a failure, and one of the
// success.
func (m making[T]) isTold(result *made[T], err error) bool {
	return result != nil && reflect.DeepEqual(result.asked, m.asked) &&
		(err != nil || result.heard.CompareAndSwap(false, true))
}

// claim is the handle and the sources, as long as something is being made of them.
type claim[T any] struct {
	making[T]
	release func()
	settled bool
}

func (c *claim[T]) make(ctx context.Context, p plan[T]) (*made[T], error) {
	item, err := p.make(ctx)
	if err == nil {
		c.settle(item)
		c.settled = true
	}
	return &made[T]{item: item, asked: c.asked}, err
}

// Close lets go of what is held.
func (c *claim[T]) Close() error {
	c.release()
	if !c.settled {
		c.shelf.abandon(c.handle)
	}
	return nil
}

// copies tells that a copy is about to be made.
func (e *engine) copies(ctx context.Context) {
	if e.copying != nil {
		e.copying(ctx)
	}
}

// copyTree copies a directory, durably.
func (e *engine) copyTree(ctx context.Context, to, from string) error {
	e.copies(ctx)
	return tree.Copy(ctx, to, from)
}

package local

import (
	"context"
	"reflect"
	"sync/atomic"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/background"
	"github.com/stowage-csi/stowage/pkg/tree"
)

// mostCopies is how many copies of each kind may run at the same time.
const mostCopies = 64

// works are the items that are created in the background, because that takes longer than a call may.
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

// ends returns the functions that end each kind of work. Unfinished items are trash.
func (w works) ends() []func(context.Context) error {
	return []func(context.Context) error{w.volumes.Close, w.snapshots.Close, w.groups.Close}
}

// plan is the decision to create an item, after all checks.
type plan[T any] struct {
	work    string // the work, for messages; empty for work that takes no longer than a call
	release func() // releases the sources
	make    func(context.Context) (T, error)
}

// made is the outcome of a plan.
type made[T any] struct {
	item  T
	asked any
	heard atomic.Bool // whether a call was told that it created the item
}

// making describes how to create an item and put it on its shelf.
type making[T any] struct {
	shelf  *shelf[T]
	handle string
	asked  any // the whole request, to recognize a retry
	decide func(context.Context) (plan[T], error)
	settle func(T)
}

// run reserves the handle, decides what to create and creates it. Long work goes on after the call ends: it holds its
// sources and the handle until its end, and the next call for the handle waits for it. If that call makes the same
// request, it gets the outcome; for others the item Exists.
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
	p, err := m.decided(ctx)
	if err != nil {
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

// decided decides what to create. It releases the handle after a failure, and after a panic, which ends only its call.
func (m making[T]) decided(ctx context.Context) (p plan[T], err error) {
	isDecided := false
	defer func() {
		if !isDecided {
			m.shelf.abandon(m.handle)
		}
	}()
	p, err = m.decide(ctx)
	isDecided = err == nil
	return p, err
}

// isTold reports whether the outcome is for the same request. Every such call is told of a failure, but only one is
// told of the success.
func (m making[T]) isTold(result *made[T], err error) bool {
	return result != nil && reflect.DeepEqual(result.asked, m.asked) &&
		(err != nil || result.heard.CompareAndSwap(false, true))
}

// claim holds the handle and the sources while an item is being created.
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

// Close releases the handle and the sources.
func (c *claim[T]) Close() error {
	c.release()
	if !c.settled {
		c.shelf.abandon(c.handle)
	}
	return nil
}

// copies announces that a copy is about to be made.
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

package wait

import (
	"context"
	"slices"
	"time"

	"github.com/stowage-csi/stowage/pkg/cloud/batch"
	"github.com/stowage-csi/stowage/pkg/failure"
)

// run looks for all who wait until nobody does.
func (w *Waiter[K, S]) run() {
	for {
		at, ok := w.next()
		if !ok {
			return
		}
		if pause := time.Until(at); pause > 0 {
			w.sleep(pause)
			continue
		}
		w.tick()
	}
}

// sleep ends early when somebody came or left.
func (w *Waiter[K, S]) sleep(pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.changed:
	}
}

// next is when the next look is due; without anybody waiting, the goroutine is taken to have ended.
func (w *Waiter[K, S]) next() (at time.Time, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var gap time.Time
	if w.options.Gap != nil {
		gap = w.began.Add(w.options.Gap(w.things))
	}
	for _, me := range w.waiting {
		if due := w.dueAt(me, gap); !ok || due.Before(at) {
			at, ok = due, true
		}
	}
	w.running = ok
	return at, ok
}

// dueAt is when a look is due for a waiter, if there is to be none before the end of the gap.
func (w *Waiter[K, S]) dueAt(me *waiter[K, S], gap time.Time) time.Time {
	if me.accept != nil {
		return later(later(me.due, w.earliest), gap)
	}
	if !me.latest.IsZero() && me.latest.Before(gap) {
		return me.latest
	}
	return later(me.due, gap)
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// tick makes one look at everything that is waited for: what is not due yet costs nothing more. What is too much for
// one request is left to the next look. It returns when the next one may begin.
func (w *Waiter[K, S]) tick() {
	ctx, keys := w.keys()
	if len(keys) == 0 {
		return
	}
	ended := make(chan struct{})
	began := w.began
	go func() {
		defer close(ended)
		results := batch.Each(ctx, keys, w.options.Batch, w.look)
		seen := make(map[K]batch.Result[S], len(keys))
		for i, key := range keys {
			seen[key] = results[i]
		}
		w.deliver(seen, began)
	}()
	if w.options.Slow == 0 {
		<-ended
		return
	}
	slow := time.NewTimer(w.options.Slow)
	defer slow.Stop()
	select {
	case <-ended:
	case <-slow.C:
	}
}

// keys are what a look that begins now is for: what is due for longest before the rest, so that no number of things
// that are stuck keeps others from being seen.
func (w *Waiter[K, S]) keys() (ctx context.Context, keys []K) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.began = time.Now()
	slices.SortStableFunc(w.waiting, func(a, b *waiter[K, S]) int { return a.due.Compare(b.due) })
	known := map[K]bool{}
	for _, me := range w.waiting {
		if len(keys) == w.options.Batch.Max && len(keys) > 0 {
			break
		}
		if ctx = me.ctx; !known[me.key] {
			known[me.key] = true
			keys = append(keys, me.key)
		}
	}
	w.things = len(keys)
	if ctx != nil {
		ctx = context.WithoutCancel(ctx) // It is for all of them.
	}
	return ctx, keys
}

// deliver shows each waiter what was seen, unless it came after the look had begun, or was shown a later look.
func (w *Waiter[K, S]) deliver(seen map[K]batch.Result[S], began time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	still := w.waiting[:0:0]
	for _, me := range w.waiting {
		result, looked := seen[me.key]
		if !looked || me.began.After(began) || me.seen.After(began) {
			still = append(still, me)
			continue
		}
		if me.seen = began; !w.show(me, result, now) {
			still = append(still, me)
		}
	}
	w.waiting = still
	w.pace.heard(anyAnswer(seen))
	w.earliest = now.Add(w.pace.gap())
}

func anyAnswer[K comparable, S any](seen map[K]batch.Result[S]) bool {
	for _, result := range seen {
		if !saysNothing(result.Err) {
			return true
		}
	}
	return false
}

// show reports whether the waiter is done.
func (w *Waiter[K, S]) show(me *waiter[K, S], result batch.Result[S], now time.Time) bool {
	if me.accept == nil {
		me.done <- outcome[S]{result.Value, result.Err}
		return true
	}
	me.due = now.Add(w.pace.next(me.transition, now.Sub(me.began)))
	me.looks++
	if me.unknown = nil; saysNothing(result.Err) {
		me.unknown = result.Err
		return false
	}
	done, err := me.accept(result.Value, result.Err)
	if !done && err == nil {
		return false
	}
	if err == nil {
		w.pace.learn(me.transition, now.Sub(me.began), me.looks == 1)
	}
	me.done <- outcome[S]{result.Value, err}
	return true
}

func saysNothing(err error) bool {
	return failure.Is(err, failure.Busy) || failure.Is(err, failure.Unavailable)
}

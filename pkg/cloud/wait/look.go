package wait

import (
	"context"
	"slices"
	"time"

	"github.com/stowage-csi/stowage/pkg/cloud/batch"
	"github.com/stowage-csi/stowage/pkg/cloud/flight"
	"github.com/stowage-csi/stowage/pkg/failure"
)

// run polls until no caller waits.
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

// sleep ends early when a caller arrives or leaves.
func (w *Waiter[K, S]) sleep(pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.changed:
	}
}

// next returns when the next look is due. If no caller waits, it marks the goroutine as ended.
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
	if w.running = ok; !ok {
		w.cause.Clear()
	}
	return at, ok
}

// dueAt returns when a look is due for a waiter. That is not before the end of the gap, unless a call of Look must not
// wait that long.
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

// tick looks once at everything that callers wait for: things that are not due yet cost nothing more. It leaves what
// does not fit into one request to the next look. It returns when the next look may begin.
func (w *Waiter[K, S]) tick() {
	ctx, keys := w.keys()
	if len(keys) == 0 {
		return
	}
	ended := make(chan struct{})
	began := w.began
	go func() {
		defer close(ended)
		w.ask(ctx, keys, began)
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

// ask looks at things, and gives their waiters the results.
func (w *Waiter[K, S]) ask(ctx context.Context, keys []K, began time.Time) {
	results := make([]batch.Result[S], len(keys))
	flight.Guard(func() { copy(results, batch.Each(ctx, keys, w.options.Batch, w.look)) }, func(p flight.Panic) {
		seen := make(map[K]outcome[S], len(keys))
		for i, key := range keys {
			seen[key] = outcome[S]{results[i].Value, results[i].Err, p}
		}
		w.deliver(seen, began)
	})
}

// keys returns the keys for a look that begins now, the longest overdue first, so that stuck things never keep others
// from being seen.
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
		ctx = w.cause.Watch(context.WithoutCancel(ctx)) // The look serves all callers.
	}
	return ctx, keys
}

// deliver gives each waiter its result. It skips a waiter that arrived after the look began, or that has seen the
// result of a later look.
func (w *Waiter[K, S]) deliver(seen map[K]outcome[S], began time.Time) {
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
	answered := anyAnswer(seen)
	if answered {
		w.cause.Clear()
	}
	w.pace.heard(answered)
	w.earliest = now.Add(w.pace.gap())
}

func anyAnswer[K comparable, S any](seen map[K]outcome[S]) bool {
	for _, result := range seen {
		if result.panic == "" && !saysNothing(result.err) {
			return true
		}
	}
	return false
}

// show passes a result to a waiter, and reports whether the waiter is done.
func (w *Waiter[K, S]) show(me *waiter[K, S], result outcome[S], now time.Time) bool {
	if me.accept == nil || result.panic != "" {
		me.done <- result
		return true
	}
	me.due = now.Add(w.pace.next(me.transition, now.Sub(me.began)))
	me.looks++
	if me.unknown = nil; saysNothing(result.err) {
		me.unknown = result.err
		flight.Because(me.ctx, result.err)
		return false
	}
	done := false
	flight.Guard(func() { done, result.err = me.accept(result.state, result.err) },
		func(p flight.Panic) { result.panic = p })
	if !done && result.err == nil && result.panic == "" {
		return false
	}
	if result.err == nil && result.panic == "" {
		w.pace.learn(me.transition, now.Sub(me.began), me.looks == 1)
	}
	me.done <- result
	return true
}

func saysNothing(err error) bool {
	return failure.Is(err, failure.Busy) || failure.Is(err, failure.Unavailable)
}

package wait

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/cloud/batch"
)

// Options say how a Waiter looks.
type Options struct {
	Batch batch.Options
	// Least and Most bound the time between two looks at one thing.
	Least, Most time.Duration
	// Typical is what the cloud is taken to need before it has been seen at work.
	Typical time.Duration
}

// Waiter waits for things of one kind. It has a goroutine only while somebody waits.
type Waiter[K comparable, S any] struct {
	options Options
	look    batch.Func[K, S]

	mu       sync.Mutex
	pace     pace
	waiting  []*waiter[K, S]
	running  bool
	earliest time.Time     // no look begins before it
	changed  chan struct{} // has room for one: the goroutine is to look at waiting again
}

// waiter is one caller of Until.
type waiter[K comparable, S any] struct {
	ctx        context.Context // for its values only
	transition string
	key        K
	accept     func(S, error) (bool, error)
	began      time.Time
	due        time.Time
	done       chan outcome[S] // has room for one
	unknown    error           // why the last look said nothing
	looks      int             // how often the thing was looked at
}

type outcome[S any] struct {
	state S
	err   error
}

// New makes a Waiter that looks by calls of look.
func New[K comparable, S any](options Options, look batch.Func[K, S]) *Waiter[K, S] {
	return &Waiter[K, S]{
		options: options,
		look:    look,
		pace:    pace{least: options.Least, most: options.Most, usual: options.Typical, seen: map[string]time.Duration{}},
		changed: make(chan struct{}, 1),
	}
}

// Until looks at the thing from time to time until accept is content with what was seen or fails, and returns that. The
// transition is what is waited for, such as "attach": how long each takes is learnt by itself.
// What accept is shown was seen after the call of Until began. It is called by the Waiter's goroutine and must not block.
//
// accept sees failures too, such as NotFound, but for those of Kinds Busy and Unavailable: they say nothing about the
// thing, and it is looked at again. Kinds: those of accept; Busy, with the reason, when the context ends first.
func (w *Waiter[K, S]) Until(ctx context.Context, transition string, key K, accept func(S, error) (done bool, err error)) (S, error) {
	me := w.join(ctx, transition, key, accept)
	select {
	case o := <-me.done:
		return o.state, o.err
	case <-ctx.Done():
		var none S
		return none, w.leave(ctx, me)
	}
}

func (w *Waiter[K, S]) join(ctx context.Context, transition string, key K, accept func(S, error) (bool, error)) *waiter[K, S] {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	me := &waiter[K, S]{
		ctx: context.WithoutCancel(ctx), transition: transition, key: key, accept: accept,
		began: now, due: now.Add(w.pace.first(transition)), done: make(chan outcome[S], 1),
	}
	w.waiting = append(w.waiting, me)
	if !w.running {
		w.running = true
		go w.run()
		return me
	}
	w.wake()
	return me
}

// leave takes a waiter out and says why it leaves.
func (w *Waiter[K, S]) leave(ctx context.Context, me *waiter[K, S]) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting = slices.DeleteFunc(w.waiting, func(other *waiter[K, S]) bool { return other == me })
	w.wake()
	took := time.Since(me.began).Round(time.Millisecond)
	if me.unknown != nil {
		return backends.Errorf(backends.Busy, "not done after %v, and the last look failed: %w", took, me.unknown)
	}
	return backends.Errorf(backends.Busy, "not done after %v: %w", took, context.Cause(ctx))
}

func (w *Waiter[K, S]) wake() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

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
	for _, me := range w.waiting {
		if !ok || me.due.Before(at) {
			at, ok = me.due, true
		}
	}
	w.running = ok
	if at.Before(w.earliest) {
		at = w.earliest
	}
	return at, ok
}

// tick makes one look at everything that is waited for: what is not due yet costs nothing more.
func (w *Waiter[K, S]) tick() {
	ctx, keys := w.keys()
	if len(keys) == 0 {
		return
	}
	began := time.Now()
	results := batch.Each(ctx, keys, w.options.Batch, w.look)
	seen := make(map[K]batch.Result[S], len(keys))
	for i, key := range keys {
		seen[key] = results[i]
	}
	w.deliver(seen, began)
}

func (w *Waiter[K, S]) keys() (ctx context.Context, keys []K) {
	w.mu.Lock()
	defer w.mu.Unlock()
	known := map[K]bool{}
	for _, me := range w.waiting {
		if ctx = me.ctx; !known[me.key] {
			known[me.key] = true
			keys = append(keys, me.key)
		}
	}
	return ctx, keys
}

// deliver shows each waiter what was seen, unless it came after the look had begun.
func (w *Waiter[K, S]) deliver(seen map[K]batch.Result[S], began time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	still := w.waiting[:0:0]
	for _, me := range w.waiting {
		result, looked := seen[me.key]
		if !looked || me.began.After(began) {
			still = append(still, me)
			continue
		}
		if !w.show(me, result, now) {
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

// show tells whether the waiter is done.
func (w *Waiter[K, S]) show(me *waiter[K, S], result batch.Result[S], now time.Time) bool {
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
	return backends.Is(err, backends.Busy) || backends.Is(err, backends.Unavailable)
}

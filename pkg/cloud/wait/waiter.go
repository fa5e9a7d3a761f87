package wait

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/stowage-csi/stowage/pkg/cloud/batch"
	"github.com/stowage-csi/stowage/pkg/cloud/flight"
	"github.com/stowage-csi/stowage/pkg/failure"
)

// Options configure a Waiter.
type Options struct {
	Batch batch.Options
	// Least and Most bound the time between two looks at one thing.
	Least, Most time.Duration
	// Typical is the assumed duration of a transition before one was seen.
	Typical time.Duration
	// Slow is how long the next look is delayed while one is under way; 0 to wait until it ends. Without it, one hanging
	// connection would stop all callers.
	Slow time.Duration
	// Gap returns the current minimum time between two looks of any kind, after a look at the given number of things; nil
	// for none. It delays a call of Look for no more than half the call's time.
	Gap func(things int) time.Duration
}

// Waiter waits for things of one kind. It has a goroutine only while callers wait.
type Waiter[K comparable, S any] struct {
	options Options
	look    batch.Func[K, S]

	mu       sync.Mutex
	pace     pace
	waiting  []*waiter[K, S]
	running  bool
	began    time.Time     // when the last look began
	things   int           // how many things the last look was for
	cause    flight.Cause  // of the looks since the last answer
	earliest time.Time     // a thing that Until waits for is not looked at before
	changed  chan struct{} // buffers one signal: the goroutine must check waiting again
}

// waiter is one caller of Until or Look.
type waiter[K comparable, S any] struct {
	ctx        context.Context
	transition string
	key        K
	accept     func(S, error) (bool, error) // nil for Look, which accepts any state
	began      time.Time
	due        time.Time
	latest     time.Time       // when the look is due regardless of the gap; none if zero
	seen       time.Time       // when the last look that included the thing began
	done       chan outcome[S] // buffers one outcome
	unknown    error           // the error of the last look, if that was inconclusive
	looks      int             // how often the thing was looked at
}

type outcome[S any] struct {
	state S
	err   error
	panic flight.Panic // of the look or of accept
}

// New returns a Waiter that polls by calls of look.
func New[K comparable, S any](options Options, look batch.Func[K, S]) *Waiter[K, S] {
	return &Waiter[K, S]{
		options: options,
		look:    look,
		pace: pace{least: options.Least, most: options.Most, usual: options.Typical, seen: map[string]time.Duration{},
			early: map[string]int{}},
		changed: make(chan struct{}, 1),
	}
}

// Until polls the thing until accept returns true or fails, and returns the state that accept saw last. The transition
// is the awaited change, for example "attach": the Waiter learns the duration of each separately. accept sees only
// states from after the call of Until began. The Waiter's goroutine calls accept, which must not block.
//
// accept sees failures too, such as NotFound, except those of Kinds Busy and Unavailable. They say nothing about the
// thing, and the Waiter looks again. Kinds: those of accept; Busy, with the reason, when the context ends first.
//
// A panic in accept is passed on to its caller, and a panic in a look to all callers that the look is for.
func (w *Waiter[K, S]) Until(ctx context.Context, transition string, key K,
	accept func(S, error) (done bool, err error)) (S, error) {
	return w.join(ctx, &waiter[K, S]{transition: transition, key: key, accept: accept})
}

// Look looks at the thing once, in one request with the things of other callers. It returns a state from after the call
// began. Kinds: those of the look; Busy when the context ends first, with the last failure of a look under way.
func (w *Waiter[K, S]) Look(ctx context.Context, key K) (S, error) {
	return w.join(ctx, &waiter[K, S]{key: key})
}

func (w *Waiter[K, S]) join(ctx context.Context, me *waiter[K, S]) (none S, _ error) {
	if err := ctx.Err(); err != nil {
		return none, failure.Errorf(failure.Busy, "not asked, because the request has ended: %w", err)
	}
	me.ctx, me.began, me.done = ctx, time.Now(), make(chan outcome[S], 1)
	w.enter(me)
	select {
	case o := <-me.done:
		o.panic.Pass()
		return o.state, o.err
	case <-ctx.Done():
		return none, w.leave(ctx, me)
	}
}

func (w *Waiter[K, S]) enter(me *waiter[K, S]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if me.due = me.began; me.accept != nil {
		me.due = me.began.Add(w.pace.first(me.transition))
	} else if end, ok := flight.Deadline(me.ctx); ok {
		me.latest = me.began.Add(end.Sub(me.began) / 2)
	}
	w.waiting = append(w.waiting, me)
	if !w.running {
		w.running = true
		go w.run()
		return
	}
	w.wake()
}

// leave removes a waiter and returns the error for its caller.
func (w *Waiter[K, S]) leave(ctx context.Context, me *waiter[K, S]) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting = slices.DeleteFunc(w.waiting, func(other *waiter[K, S]) bool { return other == me })
	w.wake()
	took := time.Since(me.began).Round(time.Millisecond)
	if me.unknown != nil {
		return failure.Errorf(failure.Busy, "not done after %v, and the last look failed: %w", took, me.unknown)
	}
	return failure.Errorf(failure.Busy, "not done after %v: %w%s", took, context.Cause(ctx), w.cause.Last())
}

func (w *Waiter[K, S]) wake() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

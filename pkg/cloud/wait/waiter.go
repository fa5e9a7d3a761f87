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

// Options say how a Waiter looks.
type Options struct {
	Batch batch.Options
	// Least and Most bound the time between two looks at one thing.
	Least, Most time.Duration
	// Typical is what the cloud is taken to need before it has been seen at work.
	Typical time.Duration
	// Slow is how long the next look is held back for the sake of one that is under way; 0 for until it ends. One
	// connection that hangs would otherwise stop all who wait.
	Slow time.Duration
	// Gap is the least time between two looks of any kind at the moment, where more would be of no use, after one for so
	// many things; nil for none. A call of Look is kept waiting for no more than half its time.
	Gap func(things int) time.Duration
}

// Waiter waits for things of one kind. It has a goroutine only while somebody waits.
type Waiter[K comparable, S any] struct {
	options Options
	look    batch.Func[K, S]

	mu       sync.Mutex
	pace     pace
	waiting  []*waiter[K, S]
	running  bool
	began    time.Time     // when the last look began
	things   int           // how many it was for
	earliest time.Time     // what is waited for is not looked at before
	changed  chan struct{} // has room for one: the goroutine is to look at waiting again
}

// waiter is one caller of Until.
type waiter[K comparable, S any] struct {
	ctx        context.Context
	transition string
	key        K
	accept     func(S, error) (bool, error) // nil for one look, whatever it shows
	began      time.Time
	due        time.Time
	latest     time.Time       // when the look is due whatever the gap; none if zero
	seen       time.Time       // when the last look began that the thing was seen in
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
		pace: pace{least: options.Least, most: options.Most, usual: options.Typical, seen: map[string]time.Duration{},
			early: map[string]int{}},
		changed: make(chan struct{}, 1),
	}
}

// Until looks at the thing from time to time until accept is content with what was seen or fails, and returns that. The
// transition is what is waited for, such as "attach": how long each takes is learnt by itself. What accept is shown was
// seen after the call of Until began. It is called by the Waiter's goroutine and must not block.
//
// accept sees failures too, such as NotFound, but for those of Kinds Busy and Unavailable: they say nothing about the
// thing, and it is looked at again. Kinds: those of accept; Busy, with the reason, when the context ends first.
func (w *Waiter[K, S]) Until(ctx context.Context, transition string, key K,
	accept func(S, error) (done bool, err error)) (S, error) {
	return w.join(ctx, &waiter[K, S]{transition: transition, key: key, accept: accept})
}

// Look looks at the thing once, together with all that others want to know. What it returns was seen after it was
// called. Kinds: those of the look; Busy when the context ends first.
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

// leave takes a waiter out and says why it leaves.
func (w *Waiter[K, S]) leave(ctx context.Context, me *waiter[K, S]) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting = slices.DeleteFunc(w.waiting, func(other *waiter[K, S]) bool { return other == me })
	w.wake()
	took := time.Since(me.began).Round(time.Millisecond)
	if me.unknown != nil {
		return failure.Errorf(failure.Busy, "not done after %v, and the last look failed: %w", took, me.unknown)
	}
	return failure.Errorf(failure.Busy, "not done after %v: %w", took, context.Cause(ctx))
}

func (w *Waiter[K, S]) wake() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

package batch

import (
	"context"
	"sync"
	"time"

	"github.com/stowage-csi/stowage/pkg/cloud/flight"
	"github.com/stowage-csi/stowage/pkg/failure"
)

// Batcher combines the items of concurrent callers into requests, one request at a time unless one is slow. It has
// goroutines only while a request is under way.
type Batcher[I comparable, O any] struct {
	options Options
	call    Func[I, O]

	mu      sync.Mutex
	places  map[I]*place[O] // items of the next requests
	order   []I             // the order of arrival; items no longer in places are skipped
	running bool
}

// place is one item's part in the next request.
type place[O any] struct {
	ctx     context.Context // of the first caller, for its values only
	cause   *flight.Cause   // of the request; nil until that has begun
	callers int
	done    chan struct{} // closed once result and panic are set
	result  Result[O]
	panic   flight.Panic
}

// New makes a Batcher.
func New[I comparable, O any](options Options, call Func[I, O]) *Batcher[I, O] {
	return &Batcher[I, O]{options: options, call: call, places: map[I]*place[O]{}}
}

// Do puts the item into the next request and returns its result. A caller whose context ends gets Unavailable, with the
// last failure of a request under way. If no other caller wants the item, it is dropped from a request that has not
// begun, but not from one that has. A panic in the request is passed on to its callers.
func (b *Batcher[I, O]) Do(ctx context.Context, item I) (O, error) {
	if err := ctx.Err(); err != nil {
		var none O
		return none, failure.Errorf(failure.Unavailable, "not asked, because the request has ended: %w", err)
	}
	p := b.join(ctx, item)
	select {
	case <-p.done:
		p.panic.Pass()
		return p.result.Value, p.result.Err
	case <-ctx.Done():
		last := b.leave(item, p)
		var none O
		return none, failure.Errorf(failure.Unavailable, "not answered before the request ended: %w%s", context.Cause(ctx),
			last)
	}
}

func (b *Batcher[I, O]) join(ctx context.Context, item I) *place[O] {
	b.mu.Lock()
	defer b.mu.Unlock()
	p, ok := b.places[item]
	if !ok {
		p = &place[O]{ctx: context.WithoutCancel(ctx), done: make(chan struct{})}
		b.places[item] = p
		b.order = append(b.order, item)
	}
	p.callers++
	if !b.running {
		b.running = true
		go b.run()
	}
	return p
}

// leave withdraws a caller, and returns the last failure of its request, as Cause.Last does.
func (b *Batcher[I, O]) leave(item I, p *place[O]) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	p.callers--
	if p.callers == 0 && b.places[item] == p {
		delete(b.places, item)
	}
	if p.cause == nil {
		return ""
	}
	return p.cause.Last()
}

// run makes requests until no items are left.
func (b *Batcher[I, O]) run() {
	for {
		items, places := b.take()
		if len(items) == 0 {
			return
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			b.ask(items, places)
		}()
		b.await(ended)
	}
}

// ask makes a request and gives its callers their results.
func (b *Batcher[I, O]) ask(items []I, places []*place[O]) {
	results := make([]Result[O], len(items))
	flight.Guard(func() { copy(results, Each(places[0].ctx, items, b.options, b.call)) }, func(panicked flight.Panic) {
		for i, p := range places {
			p.result, p.panic = results[i], panicked
			close(p.done)
		}
	})
}

// await returns when a request has ended or is slow.
func (b *Batcher[I, O]) await(ended <-chan struct{}) {
	if b.options.Slow == 0 {
		<-ended
		return
	}
	slow := time.NewTimer(b.options.Slow)
	defer slow.Stop()
	select {
	case <-ended:
	case <-slow.C:
	}
}

// take removes the items of one request. If there are none, it marks the goroutine as ended.
func (b *Batcher[I, O]) take() (items []I, places []*place[O]) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.order) > 0 && (b.options.Max == 0 || len(items) < b.options.Max) {
		item := b.order[0]
		b.order = b.order[1:]
		if p, ok := b.places[item]; ok {
			items, places = append(items, item), append(places, p)
			delete(b.places, item)
		}
	}
	if b.running = len(items) > 0; !b.running {
		return nil, nil
	}
	cause := &flight.Cause{}
	ctx := cause.Watch(places[0].ctx)
	for _, p := range places {
		p.ctx, p.cause = ctx, cause
	}
	return items, places
}

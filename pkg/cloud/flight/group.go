package flight

import (
	"context"
	"sync"
	"time"

	"github.com/stowage-csi/stowage/pkg/failure"
)

// Op is an operation on an object.
type Op struct {
	Key  string // the object: it has one operation at a time
	What string // the operation, for the message of Busy, for example "attaching it to i-1"
	// Join lets a caller share an operation that is under way with the same What. Without Join, that is Busy too.
	Join bool
}

// Group runs operations, one at a time for each key. The zero value is ready for use.
type Group[T any] struct {
	mu      sync.Mutex
	flights map[string]*flight[T]
}

type flight[T any] struct {
	op      Op
	callers int
	cancel  context.CancelCauseFunc
	cause   Cause
	done    chan struct{} // closed once value, err and panic are set
	value   T
	err     error
	panic   Panic
}

// Do runs work and returns its result. Kinds: Busy when another operation on the key is under way, or when the caller's
// context ends before work does; Unavailable when that context has ended already; those of work. A caller whose context
// ends gets the last failure that work has recorded by Because. A panic in work is passed on to the callers that wait.
//
// The context of work has the values of the caller's context, and ends when all callers that wait for it have left.
func (g *Group[T]) Do(ctx context.Context, op Op, work func(ctx context.Context) (T, error)) (T, error) {
	var none T
	if err := ctx.Err(); err != nil {
		return none, failure.Errorf(failure.Unavailable, "not begun, because the request has ended: %w", err)
	}
	f, err := g.board(ctx, op, work)
	if err != nil {
		return none, err
	}
	select {
	case <-f.done:
		f.panic.Pass()
		return f.value, f.err
	case <-ctx.Done():
	}
	g.leave(f)
	return none, failure.Errorf(failure.Busy, "%s goes on, but the request has ended: %w%s", op.What, context.Cause(ctx),
		f.cause.Last())
}

// Under returns the operation that is under way on the object.
func (g *Group[T]) Under(key string) (what string, busy bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if f, ok := g.flights[key]; ok {
		return f.op.What, true
	}
	return "", false
}

func (g *Group[T]) board(ctx context.Context, op Op, work func(context.Context) (T, error)) (*flight[T], error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if f, ok := g.flights[op.Key]; ok {
		// An operation without callers is ending: nobody gets its result.
		if !op.Join || f.op != op || f.callers == 0 {
			return nil, failure.Errorf(failure.Busy, "%s is under way: ask again", f.op.What)
		}
		f.callers++
		return f, nil
	}
	inner, cancel := context.WithCancelCause(withDeadline(ctx))
	f := &flight[T]{op: op, callers: 1, cancel: cancel, done: make(chan struct{})}
	if g.flights == nil {
		g.flights = map[string]*flight[T]{}
	}
	g.flights[op.Key] = f
	go g.run(f.cause.Watch(inner), f, work)
	return f, nil
}

func (g *Group[T]) run(ctx context.Context, f *flight[T], work func(context.Context) (T, error)) {
	defer f.cancel(nil)
	Guard(func() { f.value, f.err = work(ctx) }, func(p Panic) { g.end(f, p) })
}

func (g *Group[T]) end(f *flight[T], p Panic) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f.panic = p
	delete(g.flights, f.op.Key)
	close(f.done)
}

func (g *Group[T]) leave(f *flight[T]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if f.callers--; f.callers == 0 {
		f.cancel(context.Canceled)
	}
}

// deadlineKey is the key for the first caller's deadline in the context of work.
type deadlineKey struct{}

// withDeadline returns a context that does not end. Deadline still returns the original deadline.
func withDeadline(ctx context.Context) context.Context {
	if at, ok := Deadline(ctx); ok {
		ctx = context.WithValue(ctx, deadlineKey{}, at)
	}
	return context.WithoutCancel(ctx)
}

// Deadline returns when the caller that began an operation wants its answer, or a context's own deadline. Work must
// make progress by then, whatever it does for other callers.
func Deadline(ctx context.Context) (at time.Time, ok bool) {
	if at, ok = ctx.Deadline(); ok {
		return at, ok
	}
	at, ok = ctx.Value(deadlineKey{}).(time.Time)
	return at, ok
}

package background

import (
	"context"
	"fmt"
	"io"
	"maps"
	"runtime/debug"
	"sync"
	"time"

	"github.com/stowage-csi/stowage/pkg/failure"
)

// kept is how long the outcome of a work is kept for the next call: longer than orchestrators pause between two calls
// (sidecars: 5 minutes).
const kept = 30 * time.Minute

// Work describes a work.
type Work struct {
	// Key identifies the object of the work, for example a volume. Each key has at most one work at a time.
	Key string
	// Name says what is done to which object: "formatting /dev/loop3 as ext4". Errors contain it. A call with another Name
	// under the same Key wants other work.
	Name string
	// Progress, unless nil, returns how far the work has come: "412 of 900 files". It is called while the work is under
	// way, from any goroutine, and must not wait.
	Progress func() string
	// Holds, unless nil, is a resource of the caller that the work needs. It is closed when the work has ended, or at once
	// if this call does not begin the work.
	Holds io.Closer
}

// drop releases the resource that the work holds.
func (w Work) drop() {
	if w.Holds != nil {
		_ = w.Holds.Close() // Writers through it sync their data themselves.
	}
}

// Works are the works of one kind: those under way, and the outcomes of ended ones that no call has received yet. It
// belongs to an object that lives as long as the process.
type Works[T any] struct {
	most int

	mu     sync.Mutex
	known  map[string]*running[T]
	closed bool
}

// New returns Works that allow the given number of works at the same time, at least one.
func New[T any](most int) *Works[T] {
	return &Works[T]{most: max(most, 1), known: map[string]*running[T]{}}
}

// running is a work that was begun. The fields after ended are written before ended is closed.
type running[T any] struct {
	work   Work
	since  time.Time
	cancel context.CancelFunc

	ended chan struct{}
	until time.Time
	value T
	err   error
	panic string // with its stack
}

// Do begins the work, unless it is under way or its outcome is still kept, and waits for its outcome until the context
// ends. The work gets a context with the values of this one that only Stop or Close ends. It must not touch objects
// that the caller continues to use. A panic in the work is passed on to the call that gets the outcome.
//
// Kinds: Busy, with the name and progress of the work, when it goes on, when other work is under way for the key, or
// when too many works are; Unavailable when the context ended before the work was begun, or the Works are closed; else
// the work's own.
func (w *Works[T]) Do(ctx context.Context, work Work, do func(context.Context) (T, error)) (T, error) {
	r, begun, err := w.join(ctx, work, do)
	if !begun {
		work.drop()
	}
	if err == nil {
		err = r.await(ctx)
	}
	if err != nil {
		var none T
		return none, err
	}
	return w.take(r)
}

// Wait waits for any work that is under way for the key. It takes the outcome of a failed work. The outcome of a
// successful work is kept for the Do that requests this work, so that it is not repeated. Kinds: Busy when the work
// goes on; else the work's own.
func (w *Works[T]) Wait(ctx context.Context, key string) error {
	r := w.find(key)
	if r == nil {
		return nil
	}
	if err := r.await(ctx); err != nil || r.panic == "" && r.err == nil {
		return err
	}
	_, err := w.take(r)
	return err
}

// Running reports whether a work is under way for the key.
func (w *Works[T]) Running(key string) bool {
	r := w.find(key)
	return r != nil && !r.over()
}

// Stop cancels the work that is under way for the key, waits for its end, and forgets its outcome. Kinds: Busy when the
// work has not ended by the end of the context.
func (w *Works[T]) Stop(ctx context.Context, key string) error {
	r := w.find(key)
	if r == nil {
		return nil
	}
	r.cancel()
	if err := r.await(ctx); err != nil {
		return failure.Errorf(failure.Busy, "it was told to end: %w", err)
	}
	w.forget(r)
	return nil
}

// Close refuses new works, cancels all works that are under way, and waits for their end. Kinds: Busy, naming those
// that have not ended by the end of the context.
func (w *Works[T]) Close(ctx context.Context) error {
	w.mu.Lock()
	w.closed = true
	all := maps.Clone(w.known)
	w.mu.Unlock()
	for _, r := range all {
		r.cancel()
	}
	var names []string
	for _, r := range all {
		if err := r.await(ctx); err != nil {
			names = append(names, r.String())
			continue
		}
		w.forget(r)
	}
	return left(names)
}

// join returns the work, and reports whether this call has begun it.
func (w *Works[T]) join(ctx context.Context, work Work,
	do func(context.Context) (T, error)) (r *running[T], begun bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.prune()
	other := w.known[work.Key]
	switch {
	case other != nil && other.work.Name == work.Name:
		return other, false, nil
	case other != nil && !other.over():
		return nil, false, failure.Errorf(failure.Busy, "%s is not begun: %s", work.Name, other)
	case w.closed:
		return nil, false, failure.Errorf(failure.Unavailable, "%s is not begun: the process is ending", work.Name)
	case ctx.Err() != nil:
		return nil, false, failure.Errorf(failure.Unavailable, "%s is not begun: %w", work.Name, ctx.Err())
	}
	if n := w.under(); n >= w.most {
		return nil, false, failure.Errorf(failure.Busy,
			"%s is not begun: %d works go on in the background, and at most %d may at the same time", work.Name, n, w.most)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r = &running[T]{work: work, since: time.Now(), cancel: cancel, ended: make(chan struct{})}
	w.known[work.Key] = r
	go r.run(ctx, do)
	return r, true, nil
}

// prune forgets outcomes that no call has received in time; w.mu is held.
func (w *Works[T]) prune() {
	maps.DeleteFunc(w.known, func(_ string, r *running[T]) bool { return r.over() && time.Since(r.until) > kept })
}

// under counts the works that are under way; w.mu is held.
func (w *Works[T]) under() (n int) {
	for _, r := range w.known {
		if !r.over() {
			n++
		}
	}
	return n
}

func (w *Works[T]) find(key string) *running[T] {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.known[key]
}

// forget removes a work that has ended.
func (w *Works[T]) forget(r *running[T]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.known[r.work.Key] == r {
		delete(w.known, r.work.Key)
	}
}

// take returns the outcome of a work that has ended, and forgets the work.
func (w *Works[T]) take(r *running[T]) (T, error) {
	w.forget(r)
	if r.panic != "" {
		panic(r.panic)
	}
	return r.value, r.err
}

// run does the work, and catches its panic.
func (r *running[T]) run(ctx context.Context, do func(context.Context) (T, error)) {
	defer r.cancel()
	r.panic = "it has ended its goroutine (runtime.Goexit)"
	defer func() {
		if cause := recover(); cause != nil {
			r.panic = fmt.Sprintf("%v\n%s", cause, debug.Stack())
		}
		r.work.drop()
		r.until = time.Now()
		close(r.ended)
	}()
	r.value, r.err = do(ctx)
	r.panic = ""
}

func (r *running[T]) over() bool {
	select {
	case <-r.ended:
		return true
	default:
		return false
	}
}

// await waits for the end of the work. Kinds: Busy when the context ends first.
func (r *running[T]) await(ctx context.Context) error {
	select {
	case <-r.ended:
	case <-ctx.Done():
	}
	if r.over() { // The end of the work counts more than that of the context.
		return nil
	}
	return failure.Errorf(failure.Busy, "%s: call again to wait for it: %w", r, ctx.Err())
}

// String returns the name of the work, its duration, and its progress.
func (r *running[T]) String() string {
	text := fmt.Sprintf("%s goes on in the background, for %s so far", r.work.Name, time.Since(r.since).Round(time.Second))
	if r.work.Progress == nil {
		return text
	}
	if progress := r.work.Progress(); progress != "" {
		text += " (" + progress + ")"
	}
	return text
}

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

// kept is how long the outcome of a work waits for the next call: longer than orchestrators pause between
// two calls (sidecars: 5 minutes).
const kept = 30 * time.Minute

// Work says what is done.
type Work struct {
	// Key is what no two works may be on at a time, such as a volume.
	Key string
	// Name says what is done, with what: "formatting /dev/loop3 as ext4". It stands in errors. A call that
	// asks for another Name under the same Key wants other work.
	Name string
	// Progress, unless nil, says how far the work has come: "412 of 900 files". It is called while the work
	// is under way, from any goroutine, and must not wait.
	Progress func() string
	// Holds, unless nil, is what the work needs of its caller: it is closed when the work has ended, or at once
	// when this call does not begin it.
	Holds io.Closer
}

// drop lets go of what the work holds.
func (w Work) drop() {
	if w.Holds != nil {
		_ = w.Holds.Close() // what is written through it is synced by those who write
	}
}

// Works are the works of one sort that are under way, and the outcomes of those that have ended and that
// no call has heard of yet. It belongs to something that lives as long as the process.
type Works[T any] struct {
	most int

	mu     sync.Mutex
	known  map[string]*running[T]
	closed bool
}

// New allows so many works under way at the same time, at least one.
func New[T any](most int) *Works[T] {
	return &Works[T]{most: max(most, 1), known: map[string]*running[T]{}}
}

// running is one work that was begun. What follows ended is written before ended is closed.
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

// Do begins the work, unless it is under way or has ended unheard, and waits for its outcome until the context
// ends. The work gets a context with the values of this one that ends by Stop or Close only, and must not touch
// what the caller goes on to use. A panic in it is passed on to who gets the outcome.
//
// Kinds: Busy, with what the work is and how far it has come, when it goes on, when other work is under way
// for the key, or when too many works are; Unavailable when the context ended before the work was begun, or
// the Works are closed; else the work's own.
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

// Wait waits for the work that is under way for the key, if there is one, whatever it is. A failure is heard with
// that; a success stays for the Do that asks for this work, so that it is not done again.
// Kinds: Busy when the work goes on; else the work's own.
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

// Stop tells the work that is under way for the key to end, waits for that, and forgets its outcome.
// Kinds: Busy when the work has not ended by the end of the context.
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

// Close begins no more works, tells all that are under way to end, and waits for that.
// Kinds: Busy, naming those that have not ended by the end of the context.
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

// join returns the work, and reports whether this call has begun it or an earlier one.
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

// prune forgets the outcomes that no call came for; w.mu is held.
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

// forget drops a work that has ended.
func (w *Works[T]) forget(r *running[T]) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.known[r.work.Key] == r {
		delete(w.known, r.work.Key)
	}
}

// take hands the outcome of a work that has ended to one who waited for it.
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
	if r.over() { // Whatever became of the context.
		return nil
	}
	return failure.Errorf(failure.Busy, "%s: call again to wait for it: %w", r, ctx.Err())
}

// String says what goes on, for how long, and how far it has come.
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

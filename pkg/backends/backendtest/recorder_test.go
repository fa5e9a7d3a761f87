package backendtest

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
)

// recorder is a test that is expected to fail.
type recorder struct {
	testing.TB
	mu       sync.Mutex
	failures []string
	cleanups []func()
}

// failuresOf runs one check of the suite over a harness and returns its failures.
func failuresOf(t *testing.T, h Harness, group, check string) []string {
	t.Helper()
	r := &recorder{TB: t}
	r.run(func() { find(t, h, group, check)(newWorld(r, h)) })
	for _, clean := range slices.Backward(r.cleanups) {
		r.run(clean)
	}
	return r.failures
}

func find(t *testing.T, h Harness, group, check string) func(w *world) {
	t.Helper()
	for _, g := range groups(h, features(t, h)) {
		for _, c := range g.checks {
			if g.name == group && c.name == check {
				return c.run
			}
		}
	}
	t.Fatalf("the suite has no check %q in %q for this backend", check, group)
	return nil
}

// run runs a part of a test, which may end its goroutine.
func (r *recorder) run(part func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				r.Errorf("panic: %v", p)
			}
		}()
		part()
	}()
	<-done
}

func (r *recorder) Helper() {}

func (r *recorder) Cleanup(clean func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleanups = append(r.cleanups, clean)
}

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Fatal(args ...any) { r.Fatalf("%s", fmt.Sprint(args...)) }

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.failures) > 0
}

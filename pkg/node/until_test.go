package node_test

import (
	"context"
	"os"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"time"
)

// until makes a call whose time ends once the condition holds, unless the call ends before. So the test chooses when
// the time is over, however busy the machine is.
func (w *world) until(condition func() bool, call func(context.Context) error) error {
	w.Helper()
	ctx, cancel := context.WithCancel(w.context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- call(ctx) }()
	if !eventually(func() bool { return condition() || len(done) > 0 }) {
		w.Error("the call does not come to where its time is to end")
	}
	cancel()
	return w.returned(done)
}

// returned waits for a call that must return by itself.
func (w *world) returned(done <-chan error) error {
	w.Helper()
	select {
	case err := <-done:
		return err
	case <-time.After(patience):
		_ = pprof.Lookup("goroutine").WriteTo(os.Stderr, 2)
		w.Fatal("the call does not return after the end of its time")
		return nil
	}
}

// awaited is a context that notices when a call waits in a package: for background work, for example, a call then does
// nothing but wait.
type awaited struct {
	context.Context
	where string // part of the names of the package's functions
	begun chan struct{}
	once  *sync.Once
}

func (a awaited) Done() <-chan struct{} {
	callers := make([]uintptr, 16)
	for frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers)]); ; {
		frame, more := frames.Next()
		if strings.Contains(frame.Function, a.where) {
			a.once.Do(func() { close(a.begun) })
		}
		if !more {
			return a.Context.Done()
		}
	}
}

// brief makes a call whose time ends as soon as it waits for background work.
func (w *world) brief(call func(context.Context) error) error {
	w.Helper()
	return w.untilIn("/pkg/background.", call)
}

// untilIn makes a call whose time ends as soon as it waits in a package.
func (w *world) untilIn(where string, call func(context.Context) error) error {
	w.Helper()
	begun := make(chan struct{})
	return w.until(func() bool {
		select {
		case <-begun:
			return true
		default:
			return false
		}
	}, func(ctx context.Context) error { return call(awaited{ctx, where, begun, &sync.Once{}}) })
}

package deadline_test

import (
	"context"
	"errors"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/deadline"
	"github.com/stowage-csi/stowage/pkg/failure"
)

// errOwn is a call's own error.
const errOwn = unix.EXDEV

func wantKind(t *testing.T, err error, kind failure.Kind, words ...string) {
	t.Helper()
	if !failure.Is(err, kind) {
		t.Errorf("got %v (Kind %s), want Kind %s", err, failure.KindOf(err), kind)
		return
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q does not say %q", err, word)
		}
	}
}

// pass lets time pass, in a bubble of synctest or not.
func pass(d time.Duration) { <-time.After(d) }

func ended(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

func TestDoPassesOn(t *testing.T) {
	var calls deadline.Calls
	ctx := calls.With(t.Context())
	got, err := deadline.Do(ctx, deadline.Call{Name: "a"}, func(context.Context) (int, error) { return 7, errOwn }, nil)
	if got != 7 || !errors.Is(err, errOwn) {
		t.Errorf("Do = %d, %v", got, err)
	}
	for range 3 { // a call that has ended blocks no other
		if err := deadline.Run(ctx, deadline.Call{Name: "a"}, func(context.Context) error { return nil }); err != nil {
			t.Error(err)
		}
	}
	err = deadline.Run(calls.With(ended(t)), deadline.Call{Name: "a"}, func(context.Context) error {
		t.Error("begun after the end")
		return nil
	})
	wantKind(t, err, failure.Unavailable, "not begun")
	for want, work := range map[string]func(context.Context) error{
		"boom":         func(context.Context) error { panic("boom") },
		"it has ended": func(context.Context) error { runtime.Goexit(); return nil },
	} {
		func() {
			defer func() {
				if cause, _ := recover().(string); !strings.HasPrefix(cause, want) {
					t.Errorf("got panic %q, want %q", cause, want)
				}
			}()
			_ = deadline.Run(ctx, deadline.Call{Name: "a"}, work)
		}()
	}
}

// A call that really hangs in the kernel is given up. Others are refused until it has returned, and it is undone then.
func TestDoGivesUp(t *testing.T) {
	var calls deadline.Calls
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	fd, undone := int(read.Fd()), make(chan int, 1) // Fd makes it blocking
	ctx, cancel := context.WithCancel(calls.With(t.Context()))
	hang := func(context.Context) (int, error) {
		cancel() // the call is given up after it was begun
		return unix.Read(fd, make([]byte, 8))
	}
	_, err = deadline.Do(ctx, deadline.Call{Name: "reading", On: "pipe"}, hang, func(n int) { undone <- n })
	wantKind(t, err, failure.Unavailable, "reading: given up")
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v does not tell why", err)
	}
	refused := func() error {
		return deadline.Run(calls.With(t.Context()), deadline.Call{Name: "writing", On: "pipe"},
			func(context.Context) error { return nil })
	}
	wantKind(t, refused(), failure.Unavailable, "an earlier call (reading, begun at ", "was given up")
	if n := calls.GivenUp(); n != 1 || !calls.UnderWay("pipe") || calls.UnderWay("reading") {
		t.Errorf("%d were given up, want 1; one is under way: %t, want true", n, calls.UnderWay("pipe"))
	}
	if err := deadline.Run(calls.With(t.Context()), deadline.Call{Name: "another"},
		func(context.Context) error { return nil }); err != nil {
		t.Errorf("another thing is refused: %v", err)
	}
	if _, err := write.WriteString("late"); err != nil {
		t.Fatal(err)
	}
	if n := <-undone; n != 4 {
		t.Errorf("undone with %d, want 4", n)
	}
	for calls.GivenUp() != 0 {
		pass(time.Millisecond)
	}
	if err := errors.Join(refused(), write.Close()); err != nil || calls.UnderWay("pipe") {
		t.Errorf("%v; a call is still under way: %t", err, calls.UnderWay("pipe"))
	}
}

// A failed call is not undone. No other call begins before a successful one is undone.
func TestUndo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls deadline.Calls
		var undone atomic.Int32
		for _, own := range []error{nil, errOwn} {
			ctx, cancel := context.WithTimeout(calls.With(t.Context()), time.Second)
			_, err := deadline.Do(ctx, deadline.Call{Name: "slow"}, func(context.Context) (int, error) {
				pass(time.Minute)
				return 0, own
			}, func(int) { pass(time.Minute); undone.Add(1) })
			wantKind(t, err, failure.Unavailable)
			cancel()
			pass(90 * time.Second)
			if refused := calls.GivenUp() == 1; refused != (own == nil) {
				t.Errorf("after a call that ended with %v: still under way %t", own, refused)
			}
			pass(time.Minute)
		}
		if undone.Load() != 1 {
			t.Errorf("undone %d times, want 1", undone.Load())
		}
	})
}

// Within its grace a call can still report its outcome.
func TestGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls deadline.Calls
		for grace, want := range map[time.Duration]failure.Kind{0: failure.Unavailable, time.Minute: failure.InUse} {
			ctx, cancel := context.WithTimeout(calls.With(t.Context()), time.Second)
			err := deadline.Run(ctx, deadline.Call{Name: "heeds", Grace: grace}, func(ctx context.Context) error {
				<-ctx.Done()
				pass(time.Second)
				return failure.Errorf(failure.InUse, "its own word")
			})
			wantKind(t, err, want)
			cancel()
			pass(time.Hour)
		}
	})
}

// Of many concurrent callers, one makes the call. If it hangs, all others fail without threads of their own.
func TestOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls deadline.Calls
		var begun atomic.Int32
		forever := make(chan struct{})
		var group sync.WaitGroup
		for range 20 {
			group.Go(func() {
				ctx, cancel := context.WithTimeout(calls.With(t.Context()), time.Second)
				defer cancel()
				wantKind(t, deadline.Run(ctx, deadline.Call{Name: "x"}, func(context.Context) error {
					begun.Add(1)
					<-forever
					return nil
				}), failure.Unavailable)
			})
		}
		group.Wait()
		if begun.Load() != 1 {
			t.Errorf("%d were begun, want 1", begun.Load())
		}
		close(forever)
	})
}

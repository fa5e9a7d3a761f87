package background_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stowage-csi/stowage/pkg/background"
	"github.com/stowage-csi/stowage/pkg/failure"
)

// over returns a context that has ended.
func over(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// A group's error names the works that have not ended, and only those, even if the context has ended, too.
func TestGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var group background.Group
		until := map[string]chan struct{}{"one": make(chan struct{}), "two": make(chan struct{})}
		for name, end := range until {
			group.Go(name, func() { <-end })
		}
		wantKind(t, group.Wait(call(t, time.Second)), failure.Busy, "one; two")
		close(until["one"])
		synctest.Wait()
		wantKind(t, group.Wait(over(t)), failure.Busy, ": two")
		go func() { pass(time.Minute); close(until["two"]) }()
		for range 100 { // Both channels are ready at the same time.
			if err := group.Wait(call(t, time.Hour)); err != nil {
				t.Fatal(err)
			}
			if err := group.Wait(over(t)); err != nil {
				t.Fatalf("all has ended: %v", err)
			}
		}
		for i := range 12 {
			group.Go(fmt.Sprint("work ", i), func() { pass(time.Minute) })
		}
		wantKind(t, group.Wait(over(t)), failure.Busy, "work 0; ", "and 2 more")
		if err := group.Wait(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// The error about the end of all works names each that has not ended, and none that has.
func TestCloseNamesWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		works, until := background.New[int](9), make(chan struct{})
		for _, name := range []string{"counting", "adding", "ending"} {
			_, err := works.Do(call(t, time.Second), background.Work{Key: name, Name: name},
				func(ctx context.Context) (int, error) {
					if <-ctx.Done(); name != "ending" {
						<-until
					}
					return 0, nil
				})
			wantKind(t, err, failure.Busy)
		}
		wantKind(t, works.Close(call(t, time.Second)), failure.Busy, "in time: adding goes on", "; counting goes on")
		close(until)
		synctest.Wait()
		if err := works.Close(over(t)); err != nil {
			t.Errorf("all has ended: %v", err)
		}
	})
}

package flight

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

// TestPanicReachesTheCallers makes an operation panic, or end its goroutine. The callers can recover, and the object is
// free.
func TestPanicReachesTheCallers(t *testing.T) {
	for want, work := range map[string]func(){
		"boom":                          func() { panic("boom") },
		"it has ended its goroutine (r": runtime.Goexit,
	} {
		t.Run(want, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { panicReachesTheCallers(t, work, want) })
		})
	}
}

func panicReachesTheCallers(t *testing.T, work func(), want string) {
	var g Group[string]
	op, begin := Op{Key: "v", What: "attaching", Join: true}, make(chan struct{})
	var callers sync.WaitGroup
	for range 2 {
		callers.Go(func() {
			defer func() {
				if cause, _ := recover().(string); !strings.HasPrefix(cause, want) {
					t.Errorf("got panic %q, want %q", cause, want)
				}
			}()
			_, _ = g.Do(t.Context(), op, func(context.Context) (string, error) {
				<-begin
				work()
				return "done", nil
			})
		})
	}
	synctest.Wait()
	close(begin)
	callers.Wait()
	if v, err := g.Do(t.Context(), op, takes(0)); v != "done" || err != nil {
		t.Errorf("after it: got %q, %v", v, err)
	}
}

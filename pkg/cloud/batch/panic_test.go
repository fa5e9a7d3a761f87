package batch

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

// TestPanicReachesTheCallers makes a request panic. Its callers can recover, and others get their results.
func TestPanicReachesTheCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(Options{}, func(_ context.Context, items []int) ([]Result[string], error) {
			if items[0] == 1 {
				panic("boom")
			}
			return make([]Result[string], len(items)), nil
		})
		var callers sync.WaitGroup
		for range 2 {
			callers.Go(func() {
				defer func() {
					if cause, _ := recover().(string); !strings.HasPrefix(cause, "boom") {
						t.Errorf("got panic %q", cause)
					}
				}()
				_, _ = b.Do(t.Context(), 1)
			})
		}
		callers.Wait()
		if _, err := b.Do(t.Context(), 2); err != nil {
			t.Errorf("after it: %v", err)
		}
	})
}

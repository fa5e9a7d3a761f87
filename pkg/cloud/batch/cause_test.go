package batch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stowage-csi/stowage/pkg/cloud/flight"
	"github.com/stowage-csi/stowage/pkg/failure"
)

// repeating is a request that fails, and that is repeated for an hour.
func repeating(ctx context.Context, items []int) ([]Result[string], error) {
	flight.Because(ctx, errors.New("rate exceeded"))
	<-time.After(time.Hour)
	return make([]Result[string], len(items)), nil
}

// TestCallerThatLeavesHearsTheLastFailure makes a caller leave before its request is answered.
func TestCallerThatLeavesHearsTheLastFailure(t *testing.T) {
	for name, row := range map[string]struct {
		slow   time.Duration
		items  []int // of one caller after another; the last caller is judged
		reason bool  // whether its error has the failure
	}{
		"of its own request":          {0, []int{1}, true},
		"of a request that it shares": {time.Second, []int{1, 2, 3}, true},
		"of a request for others":     {0, []int{1, 2}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := New(Options{Slow: row.slow}, repeating)
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				var last error
				var group sync.WaitGroup
				for i, item := range row.items {
					group.Go(func() {
						if _, err := b.Do(ctx, item); i == len(row.items)-1 {
							last = err
						}
					})
					synctest.Wait()
				}
				group.Wait()
				if !failure.Is(last, failure.Unavailable) || strings.Contains(fmt.Sprint(last), "rate exceeded") != row.reason {
					t.Errorf("got %v, want Unavailable with the failure: %t", last, row.reason)
				}
				<-time.After(3 * time.Hour) // The requests have ended.
			})
		})
	}
}

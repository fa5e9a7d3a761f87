package wait

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stowage-csi/stowage/pkg/cloud/batch"
)

// panicOf returns the text of a call's panic.
func panicOf(call func()) (cause string) {
	defer func() { cause, _ = recover().(string) }()
	call()
	return ""
}

// TestPanicReachesTheCallers makes a look panic, and a function that judges its result. Their callers can recover, and
// others get their results.
func TestPanicReachesTheCallers(t *testing.T) {
	for name, row := range map[string]struct {
		look, accept bool // which of them panics
	}{
		"of a look":                 {look: true},
		"of a function that judges": {accept: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { panicReachesTheCallers(t, row.look, row.accept) })
		})
	}
}

func panicReachesTheCallers(t *testing.T, look, accept bool) {
	var broken sync.Once
	w := New(Options{Least: time.Second, Most: time.Second, Typical: time.Second},
		func(_ context.Context, keys []string) ([]batch.Result[bool], error) {
			if look {
				broken.Do(func() { panic("boom") })
			}
			return make([]batch.Result[bool], len(keys)), nil
		})
	var callers sync.WaitGroup
	for _, panics := range []bool{true, look} {
		callers.Go(func() {
			cause := panicOf(func() {
				_, err := w.Until(t.Context(), "do", "a", func(bool, error) (bool, error) {
					if accept && panics {
						panic("boom")
					}
					return true, nil
				})
				if err != nil {
					t.Error(err)
				}
			})
			if strings.HasPrefix(cause, "boom") != panics {
				t.Errorf("got panic %q, want one: %t", cause, panics)
			}
		})
	}
	callers.Wait()
	if _, err := w.Look(t.Context(), "a"); err != nil {
		t.Errorf("after it: %v", err)
	}
}

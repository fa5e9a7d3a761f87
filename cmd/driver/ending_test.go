package main

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// A backend whose end hangs does not delay the process, which logs that. It is told to end in any case, and has a while
// for that, even if no time is left.
func TestAHangingBackendEnds(t *testing.T) {
	const limit = 20 * time.Second
	for _, before := range []time.Duration{0, limit - time.Millisecond, limit, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			var said strings.Builder
			end, never, entered := newEnding(limit), make(chan struct{}), make(chan time.Duration, 1)
			end.begin()
			<-time.After(before)
			began := time.Now()
			err := end.close(t.Context(), func(ctx context.Context) error {
				until, _ := ctx.Deadline()
				entered <- time.Until(until)
				<-never
				return nil
			}, slog.New(slog.NewTextHandler(&said, nil)))
			close(never)
			has := max(limit-before, tellTime)
			if given := <-entered; given != has {
				t.Errorf("after %s of %s the backend has %s to end in, want %s", before, limit, given, has)
			}
			if took := time.Since(began); err != nil || took != has+tellTime {
				t.Errorf("after %s of %s its end took %s (%v), want %s", before, limit, took, err, has+tellTime)
			}
			if !strings.Contains(said.String(), "closing the backend: given up") {
				t.Errorf("the log does not say that the backend was given up: %q", said.String())
			}
		})
	}
}

// The time of the end fits into the 30 s that Kubernetes gives the pods, which deploy/tests checks.
func TestTheEndFitsIntoThePods(t *testing.T) {
	o := &options{role: both}
	o.bind(&cobra.Command{}, backends.Registry{}) // It sets the default of the grace.
	const most = 29 * time.Second                 // The signal and the end of the process need the rest.
	if all := o.grace + restOfEnd + 2*tellTime; all > most {
		t.Errorf("the end may take %s, want %s at most", all, most)
	}
}

// All parts of the end share one deadline, which begins with the end: a late part has the time that earlier ones left.
func TestTheEndHasOneDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said strings.Builder
		log := slog.New(slog.NewTextHandler(&said, nil))
		end, began := newEnding(20*time.Second+restOfEnd), time.Now()
		end.begin()
		<-time.After(21 * time.Second) // in the bubble: the parts that end before the backend
		err := end.close(t.Context(), func(ctx context.Context) error {
			<-ctx.Done()
			return backends.Errorf(backends.Busy, "pool %q: the removal of trash has not ended", "p")
		}, log)
		if took := time.Since(began); err != nil || took > 29*time.Second {
			t.Errorf("the end took %s (%v), and Kubernetes kills a pod after 30 s", took, err)
		}
		if !strings.Contains(said.String(), "removal of trash") || strings.Count(said.String(), "\n") != 1 {
			t.Errorf("it is not said in one line what was left: %q", said.String())
		}
		broken := errors.New("the lock cannot be given back")
		err = newEnding(time.Second).close(t.Context(), func(context.Context) error { return broken }, log)
		if !errors.Is(err, broken) {
			t.Errorf("a failure of the end became %v", err)
		}
	})
}

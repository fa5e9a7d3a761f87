package driver

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// writerFunc is a function that writes.
type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// TestStorageThatGoesIsLogged once when it goes and once when it is back, however often it is looked at.
func TestStorageThatGoesIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // time that passes orders nothing for the race detector
		var lines strings.Builder
		var issues []backends.StorageIssue
		w := &storageWatch{
			inspect: func(context.Context) ([]backends.StorageIssue, error) {
				mu.Lock()
				defer mu.Unlock()
				return slices.Clone(issues), nil
			},
			log: slog.New(slog.NewTextHandler(writerFunc(func(p []byte) (int, error) {
				mu.Lock()
				defer mu.Unlock()
				return lines.Write(p)
			}), nil)),
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go w.run(ctx)
		said := func(want string, now ...backends.StorageIssue) {
			t.Helper()
			mu.Lock()
			issues = now
			lines.Reset()
			mu.Unlock()
			time.Sleep(10 * storageWatchEvery) //nolint:forbidigo // in a bubble time only passes when nobody works
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if got := lines.String(); strings.Count(got, "\n") != strings.Count(want, "\n") || !strings.Contains(got, strings.TrimSpace(want)) {
				t.Errorf("got %q, want one line with %q", got, want)
			}
		}
		full := backends.StorageIssue{Reason: "PoolFull", Message: "full"}
		away := backends.StorageIssue{Unreachable: true, Reason: "PoolAway", Message: "the disk of pool a is away"}
		said("")
		said("", full)
		said("the disk of pool a is away\"\n", full, away)
		away.Message = "the disk of pool a is away, as it was"
		said("", full, away)
		said("can be used again\" reason=PoolAway\n")
	})
}

// TestProbeIsOfTheProcess: a sidecar has it restarted when it is not ready, also while its storage is gone.
func TestProbeIsOfTheProcess(t *testing.T) {
	s := serve(t, directories{}, time.Second)
	answer, err := csi.NewIdentityClient(s.connection).Probe(t.Context(), &csi.ProbeRequest{})
	if err != nil || !answer.GetReady().GetValue() {
		t.Errorf("got %v, %v", answer, err)
	}
}

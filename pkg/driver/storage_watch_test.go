package driver

import (
	"context"
	"log/slog"
	"maps"
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

// TestStorageIsWatched: what is not well is logged once when that begins and once when it has ended, however often it
// is looked at, and is counted.
func TestStorageIsWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // time that passes orders nothing for the race detector
		var lines strings.Builder
		var issues []backends.StorageIssue
		m := NewMetrics("d", "v")
		w := &storageWatch{
			count: m.watchStorage(),
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
			if got := lines.String(); strings.Count(got, "\n") != strings.Count(want, "\n") ||
				!strings.Contains(got, strings.TrimSpace(want)) {
				t.Errorf("got %q, want one line with %q", got, want)
			}
		}
		counted := func(unreachable, degraded float64) {
			t.Helper()
			want := map[string]float64{"unreachable": unreachable, "degraded": degraded}
			if got := gauges(t, m, "stowage_storage_issues"); !maps.Equal(got, want) {
				t.Errorf("counted are %v, want %v", got, want)
			}
		}
		full := backends.StorageIssue{Reason: "PoolFull", Message: "pool b is full"}
		away := backends.StorageIssue{Unreachable: true, Reason: "PoolAway", Message: "the disk of pool a is away"}
		said("")
		counted(0, 0)
		said("pool b is full\"\n", full)
		counted(0, 1)
		said("the disk of pool a is away\"\n", full, away)
		counted(1, 1)
		away.Message = "the disk of pool a is away, as it was"
		said("", full, away)
		said("count=2 why=\"the disk of pool a is away, as it was\"\n", full, away, away)
		counted(2, 1)
		said("well again\" reason=PoolFull\n", away, away)
		said("well again\" reason=PoolAway\n")
		counted(0, 0)
	})
}

// gauges reads a metric: its values, by its label that is not the driver's.
func gauges(t *testing.T, m *Metrics, name string) map[string]float64 {
	t.Helper()
	families, err := m.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if family.GetName() == name && label.GetName() != "driver" {
					values[label.GetValue()] = metric.GetGauge().GetValue()
				}
			}
		}
	}
	return values
}

// TestProbeIsOfTheProcess: a sidecar has it restarted when it is not ready, also while its storage is gone.
func TestProbeIsOfTheProcess(t *testing.T) {
	s := serve(t, directories{}, time.Second)
	answer, err := csi.NewIdentityClient(s.connection).Probe(t.Context(), &csi.ProbeRequest{})
	if err != nil || !answer.GetReady().GetValue() {
		t.Errorf("got %v, %v", answer, err)
	}
}

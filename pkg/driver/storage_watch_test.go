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
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// writerFunc is a function that writes.
type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// TestStorageIsWatched: an issue is logged once at its beginning and once at its end, however often the storage is
// checked, and is counted.
func TestStorageIsWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // Simulated time orders nothing for the race detector.
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

// gauges reads the values of a metric, by its other label than the driver's.
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

// away is a backend whose storage is gone. It reports that, or hangs until the test ends it.
type away struct {
	backends.Backend
	begun, end chan struct{} // nil if it reports
}

func (b away) fails() error {
	if b.end != nil {
		select {
		case b.begun <- struct{}{}:
		default:
		}
		<-b.end
	}
	return backends.Errorf(backends.Unavailable, "the disk of pool a is away")
}

func (b away) Delete(context.Context, string) error { return b.fails() }

func (b away) Source(context.Context, backends.Attachment) (backends.Source, error) {
	return nil, b.fails()
}

func (b away) Inspect(context.Context) ([]backends.StorageIssue, error) {
	return []backends.StorageIssue{{Unreachable: true, Reason: "PoolAway", Message: b.fails().Error()}}, nil
}

// TestProbeIsOfTheProcess: the kubelet restarts a driver that is not ready, so the driver is ready even while its
// storage is gone.
func TestProbeIsOfTheProcess(t *testing.T) {
	s := serveAway(t, away{})
	_, err := s.client.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: "v"})
	health, failed := csi.NewNodeClient(s.connection).NodeGetStorageHealth(t.Context(), &csi.NodeGetStorageHealthRequest{})
	if status.Code(err) != codes.Unavailable || failed != nil || len(health.GetBackendHealth()) != 1 ||
		health.GetBackendHealth()[0].GetStatus() != csi.StorageHealthErrorType_STORAGE_UNREACHABLE {
		t.Fatalf("the storage is not gone, and nothing is shown: %v, %v, %v", err, health, failed)
	}
	s.wantReady(t)
}

// TestProbeWhileStorageHangs: the probe does not wait for storage.
func TestProbeWhileStorageHangs(t *testing.T) {
	backend := away{begun: make(chan struct{}, 1), end: make(chan struct{})}
	s := serveAway(t, backend)
	answer := s.delete(t)
	<-backend.begun
	s.wantReady(t)
	close(backend.end)
	if code := status.Code(<-answer); code != codes.Unavailable {
		t.Errorf("the call that hung is answered %s", code)
	}
}

func serveAway(t *testing.T, backend away) serving {
	t.Helper()
	return serveConfig(t, Config{Instance: &backends.Instance{Controller: backend, Node: backend}, NodeID: "n",
		StateDir: t.TempDir(), Log: slog.New(slog.DiscardHandler)}, time.Second)
}

// wantReady probes as the sidecars do, and as the program does that the kubelet runs.
func (s serving) wantReady(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	answer, err := csi.NewIdentityClient(s.connection).Probe(ctx, &csi.ProbeRequest{})
	if err != nil || !answer.GetReady().GetValue() {
		t.Errorf("got %v, %v, want it ready", answer, err)
	}
	if err := Probe(ctx, "unix://"+s.socket); err != nil {
		t.Errorf("stowage probe: %v", err)
	}
}

package driver

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/holds"
)

// detaching is a backend that counts what it detaches.
type detaching struct {
	backends.Backend
	backends.Attacher
	times *int
}

func (d detaching) Detach(context.Context, string, string) error { *d.times++; return nil }

// TestHeldVolumesStayAttached checks that a volume is detached only when whoever knows what nodes use lets it go.
func TestHeldVolumesStayAttached(t *testing.T) {
	for name, c := range map[string]struct {
		answer func() (holds.Hold, error) // nil: nobody answers
		want   codes.Code
		says   string
	}{
		"free": {func() (holds.Hold, error) { return holds.Hold{}, nil }, codes.OK, ""},
		"held": {func() (holds.Hold, error) { return holds.Hold{Held: true, Says: "node one uses it"}, nil },
			codes.FailedPrecondition, `volume "v" stays attached: node one uses it`},
		"not known": {func() (holds.Hold, error) { return holds.Hold{}, errors.New("the API server is away") },
			codes.Unavailable, "the API server is away"},
		"nobody answers": {nil, codes.Unavailable, `volume "v" stays attached: whether a node uses it is not known`},
	} {
		t.Run(name, func(t *testing.T) {
			endpoint, asked, detached := holdSocket(t), make(chan holds.Query, 10), 0
			if c.answer != nil {
				serveHolds(t, endpoint, func(_ context.Context, q holds.Query) (holds.Hold, error) {
					asked <- q
					return c.answer()
				})
			}
			s := serveConfig(t, Config{Instance: &backends.Instance{Controller: detaching{times: &detached}},
				Holds: endpoint, Log: slog.New(slog.DiscardHandler)}, time.Second)
			_, err := s.client.ControllerUnpublishVolume(t.Context(),
				&csi.ControllerUnpublishVolumeRequest{VolumeId: "v", NodeId: "node-1"})
			if status.Code(err) != c.want || !strings.Contains(status.Convert(err).Message(), c.says) {
				t.Errorf("%v, want %s and %q", err, c.want, c.says)
			}
			if (detached == 1) != (c.want == codes.OK) {
				t.Errorf("it was detached %d times", detached)
			}
			if c.answer != nil {
				if q := <-asked; q != (holds.Query{Volume: "v", Node: "node-1"}) {
					t.Errorf("asked was %+v", q)
				}
			}
		})
	}
}

// TestHoldsThatMeanNothing checks that a driver which could not keep the promise does not start.
func TestHoldsThatMeanNothing(t *testing.T) {
	for name, c := range map[string]struct {
		backend  backends.Backend
		endpoint string
		says     string
	}{
		"a backend that attaches nothing": {bareBackend{}, "unix:///csi/holds.sock", "detaches nothing: leave it out"},
		"another kind of socket":          {detaching{}, "tcp://127.0.0.1:1", "--holds: the endpoint"},
	} {
		_, err := NewServer(t.Context(), Config{Instance: &backends.Instance{Controller: c.backend}, Holds: c.endpoint,
			Metrics: NewMetrics("test", "1"), Log: slog.New(slog.DiscardHandler)})
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}

// holdSocket is a path that is short enough for a socket.
func holdSocket(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "stowage-") //nolint:usetesting // t.TempDir holds the test's name: too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "holds")
}

func serveHolds(t *testing.T, endpoint string, answer func(context.Context, holds.Query) (holds.Hold, error)) {
	t.Helper()
	listener, err := Listen(t.Context(), endpoint)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- ServeHolds(ctx, listener, answer) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

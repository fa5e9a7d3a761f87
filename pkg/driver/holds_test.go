package driver

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/holds"
)

// detaching is a backend that counts its detachments.
type detaching struct {
	backends.Backend
	backends.Attacher
	times *int
}

func (d detaching) Detach(context.Context, string, string) error { *d.times++; return nil }

// TestHeldVolumesStayAttached checks that a volume is detached only with the permission of the holds server.
func TestHeldVolumesStayAttached(t *testing.T) {
	for name, c := range map[string]struct {
		answer func() (holds.Hold, error) // nil: no server answers
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

// TestHoldsAreAskedAgain has no server for a while: once there is one, the driver finds it within seconds.
func TestHoldsAreAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		served := bufconn.Listen(1 << 16)
		var there atomic.Bool
		dial := func(ctx context.Context, _ string) (net.Conn, error) {
			if !there.Load() {
				return nil, errors.New("nobody is there")
			}
			return served.DialContext(ctx)
		}
		reader, err := newHoldReader("unix:///csi/holds.sock", grpc.WithContextDialer(dial))
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			if err := reader.check(t.Context(), "v", "node-1"); !backends.Is(err, backends.Unavailable) {
				t.Errorf("%v, want Unavailable", err)
			}
			time.Sleep(30 * time.Second) //nolint:forbidigo // Simulated time.
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- ServeHolds(ctx, served, slog.New(slog.DiscardHandler),
				func(context.Context, holds.Query) (holds.Hold, error) { return holds.Hold{}, nil })
		}()
		there.Store(true)
		time.Sleep(2 * time.Second) //nolint:forbidigo // Simulated time.
		if err := reader.check(t.Context(), "v", "node-1"); err != nil {
			t.Errorf("two seconds later: %v", err)
		}
		stop()
		if err := errors.Join(<-done, reader.close(t.Context())); err != nil {
			t.Error(err)
		}
	})
}

// TestHoldsAtAnyPath has a socket whose path has characters that mean something in a URL.
func TestHoldsAtAnyPath(t *testing.T) {
	for _, end := range []string{"%41", "%", "?a", "#a", " a"} {
		t.Run(end, func(t *testing.T) {
			endpoint := "unix://" + holdSocket(t) + end
			serveHolds(t, endpoint, func(context.Context, holds.Query) (holds.Hold, error) { return holds.Hold{}, nil })
			reader, err := newHoldReader(endpoint)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(reader.check(t.Context(), "v", "node-1"), reader.close(t.Context())); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestHoldsThatPanic checks that an answer that panics ends nothing else, and permits no detachment.
func TestHoldsThatPanic(t *testing.T) {
	endpoint := holdSocket(t)
	serveHolds(t, endpoint, func(context.Context, holds.Query) (holds.Hold, error) { panic("a defect") })
	reader, err := newHoldReader(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := reader.check(t.Context(), "v", "node-1"); !backends.Is(err, backends.Unavailable) {
			t.Errorf("%v, want Unavailable", err)
		}
	}
	if err := reader.close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestHoldsThatMeanNothing checks that a driver that could not keep the promise does not start.
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

// holdSocket returns a path that is short enough for a socket.
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
	go func() { ended <- ServeHolds(ctx, listener, slog.New(slog.DiscardHandler), answer) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

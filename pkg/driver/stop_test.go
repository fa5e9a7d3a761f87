package driver

import (
	"context"
	"log/slog"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// inBubble serves a backend on a listener of the bubble, in which time passes only while all goroutines wait.
func inBubble(t *testing.T, backend backends.Backend, grace time.Duration) (serving, *bufconn.Listener) {
	t.Helper()
	listener := bufconn.Listen(1 << 16)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	server, err := NewServer(ctx, Config{Name: "test.csi.stowage.dev", Version: "1",
		Instance: &backends.Instance{Controller: backend}, Metrics: NewMetrics("test.csi.stowage.dev", "1"),
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	s := serving{server: server, stop: stop, done: make(chan error, 1)}
	go func() { s.done <- server.Serve(ctx, listener, grace) }()
	s.connection, err = grpc.NewClient("passthrough:///bubble", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	s.client = csi.NewControllerClient(s.connection)
	return s, listener
}

// The end waits neither for idle connections, nor for backends that ignore their cancellation. The background work has
// all the time that the requests leave, and no part takes additional time. The end begins no new work.
func TestStopEndsInTime(t *testing.T) {
	const grace = 20 * time.Second
	for name, c := range map[string]struct {
		grace, want     time.Duration
		request, behind bool // whether a request hangs, and the background work
	}{
		"silent connections":          {time.Hour, 2 * answerTime, false, false},
		"a stubborn request":          {grace, grace + 3*answerTime, true, false},
		"a background that hangs":     {grace, grace + EndTime, false, true},
		"both":                        {grace, grace + EndTime, true, true},
		"both without time for calls": {0, EndTime, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				backend := stubborn{begun: make(chan struct{}, 1), end: make(chan struct{})}
				s, listener := inBubble(t, backend, c.grace)
				for range 2 {
					s.server.ends = append(s.server.ends, func(ctx context.Context) error {
						if !c.behind {
							return nil
						}
						<-ctx.Done()
						return ctx.Err()
					})
				}
				silent, err := listener.DialContext(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if c.request {
					s.delete(t)
					<-backend.begun
				} else if _, err := s.client.ControllerGetCapabilities(t.Context(),
					&csi.ControllerGetCapabilitiesRequest{}); err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				s.stop()
				turnedAway := make(chan struct{})
				go func() { // A caller that keeps asking does not keep it alive.
					defer close(turnedAway)
					for code := codes.OK; code != codes.Unavailable; {
						_, err := s.client.ControllerGetCapabilities(context.Background(), &csi.ControllerGetCapabilitiesRequest{})
						code = status.Code(err)
					}
				}()
				if err := <-s.done; err != nil {
					t.Errorf("it ended with %v", err)
				}
				if took := time.Since(began); took != c.want {
					t.Errorf("the end took %s, want %s", took, c.want)
				}
				<-turnedAway
				close(backend.end)
				_, _ = s.connection.Close(), silent.Close() // They end with the bubble.
			})
		})
	}
}

// A server that is stopped before it accepts, or while it begins to, has not failed.
func TestStopBeforeServing(t *testing.T) {
	for range 200 {
		s, _ := inBubble(t, stubborn{}, time.Hour)
		s.stop()
		if err := <-s.done; err != nil {
			t.Fatalf("it ended with %v", err)
		}
		_ = s.connection.Close() // Nothing was asked.
	}
}

package driver

import (
	"context"
	"log/slog"
	"net"
	"strings"
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

// A request that takes too long is answered while its caller still listens: he reads why, not only that it was too
// long. Time passes only while the backend waits: a busy machine has no part in it.
func TestTheReasonIsHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const name, limit = "test.csi.stowage.dev", 2 * time.Second
		life, stop := context.WithCancel(t.Context())
		server, err := NewServer(life, Config{
			Name: name, Version: "1", Metrics: NewMetrics(name, "1"), Log: slog.New(slog.DiscardHandler),
			Instance: &backends.Instance{Controller: slow{begun: make(chan struct{}), end: make(chan struct{})}},
		})
		if err != nil {
			t.Fatal(err)
		}
		listener, done := bufconn.Listen(1<<20), make(chan error, 1)
		go func() { done <- server.Serve(life, listener, time.Minute) }()
		dial := func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }
		connection, err := grpc.NewClient("passthrough:///in-memory",
			grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(dial))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		begun := time.Now()
		_, err = csi.NewControllerClient(connection).DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: "v"})
		took := time.Since(begun)
		if status.Code(err) != codes.DeadlineExceeded || !strings.Contains(err.Error(), "not done") || took >= limit {
			t.Errorf("after %s of %s the answer is %v, want DeadlineExceeded and the backend's reason in time", took, limit, err)
		}
		stop()
		if err := <-done; err != nil {
			t.Errorf("the server ended with %v", err)
		}
		if err := connection.Close(); err != nil {
			t.Error(err)
		}
	})
}

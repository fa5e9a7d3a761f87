package driver

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// failing is a backend whose volumes cannot be deleted, nobody knows why, and cannot be found. One is out of order.
type failing struct{ backends.Backend }

func (failing) Delete(_ context.Context, handle string) error {
	if handle == "broken" {
		panic("out of cheese")
	}
	return backends.Errorf(backends.Unknown, "the storage is confused")
}

func (failing) Get(context.Context, string) (*backends.Volume, error) {
	return nil, backends.Errorf(backends.NotFound, "there is no such volume")
}

func (failing) Modify(context.Context, string, any) error {
	return backends.Errorf(backends.InUse, "the volume is in use")
}

// flooded has a server log what the calls make it say, in a time that passes only when a call waits.
func flooded(t *testing.T, calls func(t *testing.T, client csi.ControllerClient, said func(parts ...string) int)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		const name = "test.csi.stowage.dev"
		var text bytes.Buffer
		life, stop := context.WithCancel(t.Context())
		definition := backends.Definition{NewMutable: func() any { return &testMutable{} }}
		server, err := NewServer(life, Config{Name: name, Version: "1", Metrics: NewMetrics(name, "1"),
			Definition: definition, Instance: &backends.Instance{Controller: failing{}},
			Log: slog.New(slog.NewTextHandler(&text, nil))})
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
		calls(t, csi.NewControllerClient(connection), func(parts ...string) int {
			synctest.Wait()
			count := 0
			for line := range strings.Lines(text.String()) {
				fits := true
				for _, part := range parts {
					fits = fits && strings.Contains(line, part)
				}
				if fits {
					count++
				}
			}
			return count
		})
		stop()
		if err := <-done; err != nil {
			t.Errorf("the server ended with %v", err)
		}
		if err := connection.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestFailuresAreLoggedWithinBounds: a caller that asks again without a pause does not fill the disk with the log of
// failures, and hides none of another kind.
func TestFailuresAreLoggedWithinBounds(t *testing.T) {
	const flood = 1000
	for what, row := range map[string]struct{ volume, message string }{
		"a failure": {"confused", "msg=failed"}, "a panic": {"broken", `msg="a request panicked"`},
	} {
		t.Run(what, func(t *testing.T) {
			flooded(t, func(t *testing.T, client csi.ControllerClient, said func(parts ...string) int) {
				remove := func() {
					if _, err := client.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: row.volume}); err == nil {
						t.Error("a failure was answered OK")
					}
				}
				for range flood {
					remove()
				}
				if got := said(row.message, "DeleteVolume"); got != failureBurst {
					t.Errorf("%d of %d failures are logged, want %d", got, flood, failureBurst)
				}
				_, _ = client.ControllerModifyVolume(t.Context(), &csi.ControllerModifyVolumeRequest{VolumeId: "v",
					MutableParameters: map[string]string{"iops": "1"}}) // It fails, too.
				if got := said("msg=failed", "ControllerModifyVolume", "in use"); got != 1 {
					t.Errorf("another failure beside the flood is logged %d times, want 1", got)
				}
				<-time.After(failuresEvery)
				remove()
				if got := said(row.message, "failures_not_logged=900"); got != 1 {
					t.Errorf("%d lines say how many failures were left out, want 1", got)
				}
			})
		})
	}
}

// TestTheServersRefusalsAreLoggedWithinBounds: the same for refusals, by the way that requests take.
func TestTheServersRefusalsAreLoggedWithinBounds(t *testing.T) {
	flooded(t, func(t *testing.T, client csi.ControllerClient, said func(parts ...string) int) {
		for range 2 * refusalBurst {
			_, _ = client.ControllerGetVolume(t.Context(), &csi.ControllerGetVolumeRequest{VolumeId: "v"}) // It is refused.
		}
		if got := said("msg=refused"); got != refusalBurst {
			t.Errorf("%d of %d refusals are logged, want %d", got, 2*refusalBurst, refusalBurst)
		}
	})
}

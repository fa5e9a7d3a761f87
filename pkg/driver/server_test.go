package driver

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/memory"
)

// slow is a backend whose Delete lasts until the test ends it, or its request ends.
type slow struct {
	backends.Backend
	begun chan struct{}
	end   chan struct{}
}

func (s slow) Delete(ctx context.Context, _ string) error {
	close(s.begun)
	select {
	case <-s.end:
		return nil
	case <-ctx.Done():
		return backends.Errorf(backends.Unavailable, "not done: %w", ctx.Err())
	}
}

// broken is a backend that panics.
type broken struct{ backends.Backend }

func (broken) Delete(context.Context, string) error { panic("out of cheese") }

// memoryBackend opens an empty backend with every feature.
func memoryBackend(t *testing.T) (backends.Definition, *backends.Instance) {
	t.Helper()
	definition := memory.Definition()
	return definition, opened(t, definition, definition.NewConfig())
}

// opened opens an empty backend.
func opened(t *testing.T, definition backends.Definition, config any) *backends.Instance {
	t.Helper()
	instance, err := definition.Open(t.Context(), backends.Options{Driver: "test", DataDir: t.TempDir(), NodeID: "n",
		Config: config, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return instance
}

// serving is a server over a backend, and its client.
type serving struct {
	server     *Server
	socket     string
	connection *grpc.ClientConn
	client     csi.ControllerClient
	stop       context.CancelFunc
	done       chan error
}

// serve serves a controller.
func serve(t *testing.T, backend backends.Backend, grace time.Duration) serving {
	t.Helper()
	return serveConfig(t, Config{Instance: &backends.Instance{Controller: backend}, Log: slog.New(slog.DiscardHandler)},
		grace)
}

func serveConfig(t *testing.T, config Config, grace time.Duration) serving {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	config.Name, config.Version, config.Metrics = "test.csi.stowage.dev", "1", NewMetrics("test.csi.stowage.dev", "1")
	server, err := NewServer(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "stowage-") //nolint:usetesting // t.TempDir holds the test's name: too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := serving{server: server, socket: filepath.Join(dir, "s"), stop: stop, done: make(chan error, 1)}
	listener, err := Listen(ctx, s.socket)
	if err != nil {
		t.Fatal(err)
	}
	go func() { s.done <- server.Serve(ctx, listener, grace) }()
	connection, err := grpc.NewClient("unix://"+s.socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(); _ = connection.Close() })
	s.connection, s.client = connection, csi.NewControllerClient(connection)
	return s
}

func (s serving) delete(t *testing.T) chan error {
	answer := make(chan error, 1)
	go func() {
		_, err := s.client.DeleteVolume(context.WithoutCancel(t.Context()), &csi.DeleteVolumeRequest{VolumeId: "v"})
		answer <- err
	}()
	return answer
}

func TestStopLetsRequestsFinish(t *testing.T) {
	backend := slow{begun: make(chan struct{}), end: make(chan struct{})}
	s := serve(t, backend, time.Minute)
	answer := s.delete(t)
	<-backend.begun
	s.stop()
	close(backend.end)
	if err := <-answer; err != nil {
		t.Errorf("the request under way was not answered: %v", err)
	}
	if err := <-s.done; err != nil {
		t.Errorf("the server ended with %v", err)
	}
	if _, err := os.Lstat(s.socket); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
}

func TestStopCancelsWhatTakesTooLong(t *testing.T) {
	backend := slow{begun: make(chan struct{}), end: make(chan struct{})}
	s := serve(t, backend, time.Millisecond)
	answer := s.delete(t)
	<-backend.begun
	s.stop()
	if code := status.Code(<-answer); code != codes.Canceled {
		t.Errorf("the request was answered with %s", code)
	}
	if err := <-s.done; err != nil {
		t.Errorf("the server ended with %v", err)
	}
}

// The background work is told to end after the requests, and has a while for it.
func TestStopEndsWhatGoesOn(t *testing.T) {
	backend := slow{begun: make(chan struct{}), end: make(chan struct{})}
	s := serve(t, backend, time.Millisecond)
	var until time.Time
	s.server.ends = append(s.server.ends, func(ctx context.Context) error {
		until, _ = ctx.Deadline()
		return backends.Errorf(backends.Busy, "it hangs")
	})
	answer := s.delete(t)
	<-backend.begun
	stopped := time.Now()
	s.stop()
	if err := <-s.done; err != nil {
		t.Errorf("the server ended with %v", err)
	}
	// The two instants enclose the stop, however long it takes.
	if !until.After(stopped) || until.After(time.Now().Add(EndTime)) {
		t.Errorf("what goes on has until %s to end after %s, want up to %s", until.Sub(stopped), stopped, EndTime)
	}
	if code := status.Code(<-answer); code != codes.Canceled {
		t.Errorf("the request was answered with %s", code)
	}
}

func TestAPanicIsAnError(t *testing.T) {
	s := serve(t, broken{}, time.Second)
	for range 2 { // the second call finds the lock free and the server alive
		if code := status.Code(<-s.delete(t)); code != codes.Internal { // it is not known what the call left
			t.Errorf("a panic was answered with %s", code)
		}
	}
}

// full has every optional interface; none of them is called.
type full struct {
	backends.Backend
	backends.Attacher
	backends.Expander
	backends.Cloner
	backends.Modifier
	backends.Lister
	backends.CapacityReporter
	backends.HealthReporter
	backends.Snapshotter
	backends.SnapshotLister
	backends.GroupSnapshotter
	backends.Topologist
	backends.Inspector
}

// bareBackend has none of them.
type bareBackend struct{ backends.Backend }

func TestCapabilitiesFollowTheBackend(t *testing.T) {
	all := backends.Resolve(full{}, nil)
	all.Inspect = full{}
	// UNKNOWN is no capability, and no backend enforces PUBLISH_READONLY.
	if got, want := len(controllerCapabilities(all)), len(csi.ControllerServiceCapability_RPC_Type_name)-2; got != want {
		t.Errorf("a full backend has %d controller capabilities, CSI knows %d", got, want)
	}
	if got, want := len(nodeCapabilities(all, true)), len(csi.NodeServiceCapability_RPC_Type_name)-1; got != want {
		t.Errorf("a full backend has %d node capabilities, CSI knows %d", got, want)
	}
	none := backends.Resolve(bareBackend{}, nil)
	for _, c := range controllerCapabilities(none) {
		switch c.GetRpc().GetType() {
		case csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME, csi.ControllerServiceCapability_RPC_GET_VOLUME,
			csi.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER:
		default:
			t.Errorf("a bare backend advertises %s", c.GetRpc().GetType())
		}
	}
	if plugin := pluginCapabilities(&Plugin{false, none}); len(plugin) != 0 {
		t.Errorf("a bare node process advertises %v", plugin)
	}
}

func TestHTTP(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	metrics := NewMetrics("test.csi.stowage.dev", "1")
	metrics.Operation("create", time.Second, nil)
	metrics.Operation("create", time.Second, backends.Errorf(backends.Exhausted, "full"))
	go func() { done <- ServeHTTP(ctx, listener, metrics) }()
	base := "http://" + listener.Addr().String()
	wantBody(t, base+"/healthz", "ok\n")
	wantBody(t, base+"/metrics",
		`stowage_backend_operation_duration_seconds_count{driver="test.csi.stowage.dev",operation="create",outcome="ok"} 1`,
		`outcome="exhausted"} 1`, `stowage_build_info{driver="test.csi.stowage.dev",version="1"} 1`)
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// stubborn is a backend whose Delete lasts until the test ends it, regardless of its context.
type stubborn struct {
	backends.Backend
	begun, end chan struct{}
}

func (s stubborn) Delete(context.Context, string) error {
	s.begun <- struct{}{}
	<-s.end
	return nil
}

func (stubborn) Source(context.Context, backends.Attachment) (backends.Source, error) {
	return nil, nil
}

func (s stubborn) Limit(context.Context) (int64, error) {
	<-s.end
	return 0, nil
}

package driver

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
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
	"github.com/stowage-csi/stowage/tests/testfs"
)

func controllerOf(backend backends.Backend) Config {
	return Config{Instance: &backends.Instance{Controller: backend}}
}

// inMemory serves a controller in a bubble of time, where time passes only while all goroutines wait: a busy machine
// does not affect durations. The returned function ends both sides.
func inMemory(t *testing.T, config Config) (client csi.ControllerClient, end func()) {
	t.Helper()
	connection, end := connectedInMemory(t, config)
	return csi.NewControllerClient(connection), end
}

// connectedInMemory is inMemory for clients of any service.
func connectedInMemory(t *testing.T, config Config) (connection *grpc.ClientConn, end func()) {
	t.Helper()
	config.Name, config.Version = "test.csi.stowage.dev", "1"
	config.Metrics = NewMetrics(config.Name, config.Version)
	config.Log = cmp.Or(config.Log, slog.New(slog.DiscardHandler))
	life, stop := context.WithCancel(t.Context())
	server, err := NewServer(life, config)
	if err != nil {
		t.Fatal(err)
	}
	listener, done := bufconn.Listen(1<<20), make(chan error, 1)
	go func() { done <- server.Serve(life, listener, time.Minute) }()
	dial := func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }
	connection, err = grpc.NewClient("passthrough:///in-memory",
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(dial))
	if err != nil {
		t.Fatal(err)
	}
	return connection, func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("the server ended with %v", err)
		}
		if err := connection.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A request that takes too long is answered while its caller still listens: the caller gets the reason, not only that
// it took too long.
func TestTheReasonIsHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 2 * time.Second
		client, end := inMemory(t, controllerOf(slow{begun: make(chan struct{}), end: make(chan struct{})}))
		defer end()
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		begun := time.Now()
		_, err := client.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: "v"})
		took := time.Since(begun)
		if status.Code(err) != codes.DeadlineExceeded || !strings.Contains(err.Error(), "not done") || took >= limit {
			t.Errorf("after %s of %s the answer is %v, want DeadlineExceeded and the backend's reason in time", took, limit, err)
		}
	})
}

// A node's request is bounded like a controller's.
func TestANodesRequestIsGivenUp(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		const limit = 5 * time.Second
		backend := stubborn{end: make(chan struct{})}
		connection, end := connectedInMemory(t, Config{Instance: &backends.Instance{Node: backend}, NodeID: "node-1",
			StateDir: dir})
		defer end()
		defer close(backend.end)
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		begun := time.Now()
		_, err := csi.NewNodeClient(connection).NodeGetInfo(ctx, &csi.NodeGetInfoRequest{})
		took := time.Since(begun)
		if status.Code(err) != codes.DeadlineExceeded || !strings.Contains(err.Error(), "has not ended yet") ||
			took >= limit {
			t.Errorf("after %s of %s the answer is %v, want DeadlineExceeded from the driver in time", took, limit, err)
		}
	})
}

// A backend that ignores the end of a request does not delay its caller any longer, and no other operation begins
// beside it.
func TestGivenUpRequestsKeepTheirLocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := stubborn{begun: make(chan struct{}, 1), end: make(chan struct{})}
		client, end := inMemory(t, controllerOf(backend))
		defer end()
		request := &csi.DeleteVolumeRequest{VolumeId: "v"}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := client.DeleteVolume(ctx, request)
		if status.Code(err) != codes.DeadlineExceeded || !strings.Contains(err.Error(), "has not ended yet") {
			t.Errorf("a backend that ignores its context: %v, want DeadlineExceeded from the driver", err)
		}
		if _, err := client.DeleteVolume(t.Context(), request); status.Code(err) != codes.Aborted {
			t.Errorf("a second request beside the first ends with %v, want Aborted", err)
		}
		close(backend.end)
		<-backend.begun
		synctest.Wait()
		if _, err := client.DeleteVolume(t.Context(), request); err != nil {
			t.Errorf("the volume is still locked: %v", err)
		}
	})
}

// dawdling is a backend of directories that takes long to record the end of a use.
type dawdling struct {
	folders
	end chan struct{}
}

func (d dawdling) Used(context.Context, string) bool { return false }

func (d dawdling) Release(context.Context, string) error {
	<-d.end
	return nil
}

// The rollback of a refused staging takes long: the caller gets the reason for the refusal, not only that it took long.
func TestTheReasonOfTheNodeIsHeard(t *testing.T) {
	testfs.NeedRoot(t)
	root, staging, state := t.TempDir(), t.TempDir(), t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "v"), 0o700); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		backend := dawdling{folders{root: root}, make(chan struct{})}
		connection, end := connectedInMemory(t, Config{Instance: &backends.Instance{Node: backend}, NodeID: "node-1",
			StateDir: state})
		defer end()
		defer close(backend.end)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err := csi.NewNodeClient(connection).NodeStageVolume(ctx, &csi.NodeStageVolumeRequest{
			VolumeId: "v", StagingTargetPath: staging, VolumeCapability: &csi.VolumeCapability{
				AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{FsType: "ext4"}},
				AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
			},
		})
		if err == nil || !strings.Contains(err.Error(), "ext4") {
			t.Errorf("the answer is %v, want the reason for which the staging was refused", err)
		}
	})
}

package inprocess

import (
	"context"
	"io"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"sigs.k8s.io/yaml"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/all"
	"github.com/stowage-csi/stowage/pkg/backends/backendtest"
	"github.com/stowage-csi/stowage/pkg/backends/local"
	"github.com/stowage-csi/stowage/pkg/driver"
	"github.com/stowage-csi/stowage/tests/localpools"
)

// Options configure a driver. The zero value is a good default.
type Options struct {
	Backend string
	// Definition replaces Backend's definition: a backend over simulated storage.
	Definition *backends.Definition
	Config     string // YAML
	DataDir    string // default: a directory of the test
	NodeID     string // default: node-1
	Topology   backends.Topology
	// DelegateFSGroup is --delegate-fsgroup.
	DelegateFSGroup bool
	// SocketDir is the directory of the socket; default: a directory of the test.
	SocketDir string
	Log       io.Writer  // default: none
	Level     slog.Level // of Log
}

// Driver is a running driver.
type Driver struct {
	Endpoint string // unix:///…
	DataDir  string
	Instance *backends.Instance
	Metrics  *driver.Metrics
	Conn     *grpc.ClientConn
	stop     context.CancelFunc
	done     chan error
}

// Start starts a driver and stops it at the end of the test.
func Start(t testing.TB, options Options) *Driver {
	t.Helper()
	if options.DataDir == "" {
		options.DataDir = t.TempDir()
	}
	if options.NodeID == "" {
		options.NodeID = "node-1"
	}
	if options.Log == nil {
		options.Log = io.Discard
	}
	log := slog.New(slog.NewTextHandler(options.Log, &slog.HandlerOptions{Level: options.Level}))
	ctx, stop := context.WithCancel(context.Background())
	d := &Driver{DataDir: options.DataDir, stop: stop, done: make(chan error, 1)}
	definition := d.open(ctx, t, options, log)
	d.serve(ctx, t, definition, options, log)
	t.Cleanup(func() { d.Stop(t) })
	return d
}

func (d *Driver) open(ctx context.Context, t testing.TB, options Options, log *slog.Logger) backends.Definition {
	t.Helper()
	definition := options.definition(t)
	open := backends.Options{
		Driver: definition.DriverName(), DataDir: options.DataDir, NodeID: options.NodeID,
		Topology: options.Topology, Log: log,
	}
	if definition.NewConfig != nil {
		open.Config = definition.NewConfig()
		if err := yaml.UnmarshalStrict([]byte(options.Config), open.Config); err != nil {
			t.Fatal(err)
		}
		if pools, ok := open.Config.(*local.Config); ok {
			pools.Limits = localpools.Patient()
		}
	}
	instance, err := definition.Open(ctx, open)
	if err != nil {
		t.Fatal(err)
	}
	d.Instance = instance
	return definition
}

func (o Options) definition(t testing.TB) backends.Definition {
	t.Helper()
	if o.Definition != nil {
		return *o.Definition
	}
	definition, err := all.Registry().Lookup(o.Backend)
	if err != nil {
		t.Fatal(err)
	}
	return definition
}

func (d *Driver) serve(ctx context.Context, t testing.TB, definition backends.Definition, options Options,
	log *slog.Logger) {
	t.Helper()
	d.Metrics = driver.NewMetrics(definition.DriverName(), "test")
	server, err := driver.NewServer(ctx, driver.Config{
		Name: definition.DriverName(), Version: "test", Definition: definition, Instance: d.Instance,
		NodeID: options.NodeID, StateDir: filepath.Join(options.DataDir, "node"),
		DelegateFSGroup: options.DelegateFSGroup, Metrics: d.Metrics, Log: log,
	})
	if err != nil {
		t.Fatal(err)
	}
	// A test's own directory can be too long for a socket's path.
	if options.SocketDir == "" {
		options.SocketDir = shortDir(t)
	}
	d.Endpoint = "unix://" + filepath.Join(options.SocketDir, "csi.sock")
	listener, err := driver.Listen(ctx, d.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	go func() { d.done <- server.Serve(ctx, listener, 5*time.Second) }()
	d.Conn, err = grpc.NewClient(d.Endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
}

// Stop stops the driver. It is idempotent.
func (d *Driver) Stop(t testing.TB) {
	t.Helper()
	if d.done == nil {
		return
	}
	d.stop()
	if err := <-d.done; err != nil {
		t.Errorf("the server ended with: %v", err)
	}
	d.done = nil
	if err := d.Conn.Close(); err != nil {
		t.Error(err)
	}
	if err := backendtest.Close(t.Context(), d.Instance); err != nil {
		t.Errorf("closing the backend: %v", err)
	}
}

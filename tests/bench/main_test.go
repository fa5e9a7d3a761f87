package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/all"
	"github.com/stowage-csi/stowage/pkg/backends/backendtest"
	pkgdriver "github.com/stowage-csi/stowage/pkg/driver"
	"github.com/stowage-csi/stowage/tests/localpools"
	"github.com/stowage-csi/stowage/tests/mountns"
)

// TestMain lets the test's binary act as each of the processes that a run starts: the floor's server, and the driver,
// which is then the real one without its command line.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "-floor-server":
			os.Exit(start())
		case "standalone":
			os.Exit(standalone(os.Args[2:]))
		}
	}
	os.Exit(mountns.Isolate(m.Run))
}

func standalone(args []string) int {
	flags := flag.NewFlagSet("standalone", flag.ContinueOnError)
	backend := flags.String("backend", "", "")
	endpoint := flags.String("endpoint", "", "")
	dataDir := flags.String("data-dir", "", "")
	httpEndpoint := flags.String("http-endpoint", "", "")
	_ = flags.String("config", "", "") // It never differs.
	if err := flags.Parse(args); err != nil {
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGTERM)
	defer stop()
	if err := serveDriver(ctx, *backend, *endpoint, *dataDir, *httpEndpoint); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func serveDriver(ctx context.Context, backend, endpoint, dataDir, httpEndpoint string) (err error) {
	definition, err := all.Registry().Lookup(backend)
	if err != nil {
		return err
	}
	name, log := backend+".csi.stowage.dev", slog.New(slog.DiscardHandler)
	if err := os.MkdirAll(dataDir, 0o700); err != nil {
		return err
	}
	instance, err := definition.Open(ctx, backends.Options{
		Driver: name, DataDir: dataDir, NodeID: "node-1", Config: localpools.Config(), Log: log,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, backendtest.Close(ctx, instance)) }()
	metrics := pkgdriver.NewMetrics(name, "test")
	server, err := pkgdriver.NewServer(ctx, pkgdriver.Config{
		Name: name, Version: "test", Definition: definition, Instance: instance, NodeID: "node-1",
		StateDir: filepath.Join(dataDir, "node"), Metrics: metrics, Log: log,
	})
	if err != nil {
		return err
	}
	web, err := (&net.ListenConfig{}).Listen(ctx, "tcp", httpEndpoint)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return pkgdriver.ServeHTTP(ctx, web, metrics) })
	group.Go(func() error {
		listener, err := pkgdriver.Listen(ctx, endpoint)
		if err != nil {
			return err
		}
		return server.Serve(ctx, listener, 5*time.Second)
	})
	return group.Wait()
}

// needRoot skips the test, with a message, where mounts are not allowed.
func needRoot(t *testing.T) {
	t.Helper()
	if unix.Geteuid() != 0 {
		t.Skip("SKIPPED: this test mounts and needs root")
	}
}

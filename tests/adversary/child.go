package adversary

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"sigs.k8s.io/yaml"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/backendtest"
	"github.com/stowage-csi/stowage/pkg/backends/nfs"
	"github.com/stowage-csi/stowage/pkg/driver"
)

// serveWord is the argument that makes this program a driver; the next argument has the orders.
const serveWord = "serve-as-the-adversarys-driver"

// draftPatience is how long an attempt without a sign of life counts as alive.
const draftPatience = 2 * time.Second

// role says which services a process has.
type role string

const (
	both       role = "both"
	controller role = "controller"
	node       role = "node"
)

// orders configure a driver's process.
type orders struct {
	Setup    string
	Root     string // the world's directory
	Role     role
	Config   string // YAML
	DataDir  string
	Endpoint string
	Files    uint64 // the limit of open files; 0 for the default
}

// Main serves, and does not return, if this program was started as a driver.
func Main() {
	at := slices.Index(os.Args, serveWord)
	if at < 0 {
		return
	}
	var o orders
	if err := errors.Join(json.Unmarshal([]byte(os.Args[at+1]), &o), o.serve()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// serve does the work of cmd/driver.
func (o *orders) serve() (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if o.Files > 0 {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: o.Files, Max: o.Files}); err != nil {
			return err
		}
	}
	setup, err := setupNamed(o.Setup)
	if err != nil {
		return err
	}
	definition, log := setup.Definition(o.Root), slog.New(slog.NewTextHandler(os.Stderr, nil))
	instance, err := o.open(ctx, setup.node(), definition, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, backendtest.Close(ctx, instance)) }()
	switch o.Role {
	case controller:
		instance.Node = nil
	case node:
		instance.Controller = nil
	case both:
	}
	name := definition.DriverName()
	server, err := driver.NewServer(ctx, driver.Config{
		Name: name, Version: "test", Definition: definition, Instance: instance, NodeID: setup.node(),
		StateDir: filepath.Join(o.DataDir, "node"), Metrics: driver.NewMetrics(name, "test"), Log: log,
	})
	if err != nil {
		return err
	}
	listener, err := driver.Listen(ctx, o.Endpoint)
	if err != nil {
		return err
	}
	return server.Serve(ctx, listener, 5*time.Second)
}

func (o *orders) open(ctx context.Context, node string, definition backends.Definition,
	log *slog.Logger) (*backends.Instance, error) {
	options := backends.Options{Driver: definition.DriverName(), DataDir: o.DataDir, NodeID: node, Log: log}
	if definition.NewConfig != nil {
		options.Config = definition.NewConfig()
		if err := yaml.UnmarshalStrict([]byte(o.Config), options.Config); err != nil {
			return nil, err
		}
		if shares, ok := options.Config.(*nfs.Config); ok {
			shares.Patience = draftPatience
		}
	}
	if err := os.MkdirAll(o.DataDir, 0o700); err != nil {
		return nil, err
	}
	return definition.Open(ctx, options)
}

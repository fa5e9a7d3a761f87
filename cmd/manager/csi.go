package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/local"
	"github.com/stowage-csi/stowage/pkg/controllers/localvolume"
	"github.com/stowage-csi/stowage/pkg/driver"
	"github.com/stowage-csi/stowage/pkg/holds"
)

// csiGrace is how long requests under way may take to finish at the end.
const csiGrace = 20 * time.Second

// csiServer serves CSI for the local volumes of a cluster, in every replica.
type csiServer struct {
	definition backends.Definition
	master     *localvolume.Master
	metrics    *driver.Metrics
	listener   net.Listener
	log        *slog.Logger
}

// addCSI adds the master of local volumes to the manager's controllers, and the CSI server for it.
func (o *masterOptions) addCSI(ctx context.Context, m ctrl.Manager, log *slog.Logger) error {
	definition := local.Definition()
	name := definition.DriverName()
	master, err := localvolume.Add(m, localvolume.Options{
		Namespace: o.namespace, Driver: name, TopologyKey: local.TopologyKey(name), Handle: local.Handle,
		SnapshotHandle: local.SnapshotHandle, GroupHandle: local.GroupHandle,
		MemberHandle: local.MemberHandle, Access: local.Access, NewMutable: definition.NewMutable, Log: log,
	})
	if err != nil {
		return err
	}
	listener, err := driver.Listen(ctx, o.csiEndpoint)
	if err != nil {
		return fmt.Errorf("--csi-endpoint: %w", err)
	}
	metrics := driver.NewMetrics(name, version)
	withoutProcess(metrics.Registry)
	o.metrics = append(o.metrics, metrics.Registry)
	return m.Add(&csiServer{definition, master, metrics, listener, log})
}

// checkEndpoint refuses the value of a flag that names no socket. An empty value asks for none.
func checkEndpoint(flag, endpoint string) error {
	if endpoint == "" {
		return nil
	}
	if err := driver.CheckEndpoint(endpoint); err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	return nil
}

// localDriver returns the name of the driver of local volumes.
func localDriver() string { return local.Definition().DriverName() }

// withoutProcess removes the metrics of the process, which the controllers export, too.
func withoutProcess(metrics *prometheus.Registry) {
	metrics.Unregister(collectors.NewGoCollector())
	metrics.Unregister(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
}

// NeedLeaderElection returns false: every replica answers calls, leader or not, because each has sidecars beside it.
func (s *csiServer) NeedLeaderElection() bool { return false }

// Start serves until the context ends.
func (s *csiServer) Start(ctx context.Context) error {
	server, err := driver.NewServer(ctx, driver.Config{
		Name: s.definition.DriverName(), Version: version, Definition: s.definition,
		Instance: &backends.Instance{Controller: s.master}, Metrics: s.metrics, Log: s.log,
	})
	if err != nil {
		return err
	}
	s.log.Info("serving CSI", "features", server.Features().Names())
	return server.Serve(ctx, s.listener, csiGrace)
}

// holdServer tells the driver beside it, in every replica, whether a volume may be detached.
type holdServer struct {
	listener net.Listener
	log      *slog.Logger
	answer   func(context.Context, holds.Query) (holds.Hold, error)
}

// addHolds serves the answers at a socket.
func addHolds(ctx context.Context, m ctrl.Manager, endpoint string, log *slog.Logger,
	answer func(context.Context, holds.Query) (holds.Hold, error)) error {
	listener, err := driver.Listen(ctx, endpoint)
	if err != nil {
		return fmt.Errorf("--serve-holds: %w", err)
	}
	return m.Add(&holdServer{listener, log, answer})
}

// NeedLeaderElection returns false: every replica answers, leader or not.
func (s *holdServer) NeedLeaderElection() bool { return false }

// Start serves until the context ends.
func (s *holdServer) Start(ctx context.Context) error {
	return driver.ServeHolds(ctx, s.listener, s.log, s.answer)
}

package driver

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/keylock"
	"github.com/stowage-csi/stowage/pkg/machines"
	"github.com/stowage-csi/stowage/pkg/node"
	"github.com/stowage-csi/stowage/pkg/pools"
	"github.com/stowage-csi/stowage/pkg/uses"
	"github.com/stowage-csi/stowage/pkg/volume"
)

// Config configures a Server.
type Config struct {
	Name       string // the driver's name, for example local.csi.stowage.dev
	Version    string
	Definition backends.Definition
	// Instance is the open backend. This process does not offer a side that is nil.
	Instance *backends.Instance
	// Plugin has the capabilities of all processes of the plugin, which each process must report; nil if this is the only
	// process.
	Plugin   *Plugin
	NodeID   string
	StateDir string // the node's state directory
	// DelegateFSGroup advertises VOLUME_MOUNT_GROUP: the driver applies fsGroup, not the kubelet.
	DelegateFSGroup bool
	MaxFormats      int  // as node.Config.MaxFormats
	Contained       bool // as node.Config.Contained
	// Holds is the socket at which the driver asks whether a volume may be detached; if it is empty, the driver does not
	// ask. Without an answer, a volume is not detached.
	Holds   string
	Metrics *Metrics
	Traces  trace.TracerProvider // nil for none
	Log     *slog.Logger
}

// streamWorkers is how many goroutines wait for calls with stacks that are large enough already. Further concurrent
// calls get goroutines of their own, so that no call waits for one that hangs.
const streamWorkers = 8

// Server is the gRPC server of one driver.
type Server struct {
	grpc     *grpc.Server
	features backends.Features
	life     context.Context
	stop     context.CancelFunc
	chores   []func(context.Context)       // background work between requests
	ends     []func(context.Context) error // stop background work after requests
	gate     *gate
	log      *slog.Logger
}

// NewServer connects the services to the backend, and registers the services that the backend supports.
func NewServer(ctx context.Context, config Config) (*Server, error) {
	features := backends.Resolve(config.Instance.Controller, config.Instance.Node)
	if config.Plugin == nil {
		config.Plugin = NewPlugin(config.Instance)
	}
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	s := &Server{features: features, life: life, stop: stop, gate: newGate(), log: config.Log}
	limits := newLogLimits()
	var here *node.Service
	s.grpc = grpc.NewServer(append(traceCalls(config.Traces), grpc.NumStreamWorkers(streamWorkers),
		grpc.ChainUnaryInterceptor(
			arrive(), s.gate.admit(), identify(config.Log), record(limits), config.Metrics.measure(),
			translate(newAnswers()), bound(life), giveUp(), rescue(limits),
			staying(func() *node.Service { return here }), sizes(), lock(keylock.New()),
		))...)
	config.Metrics.watchBackend(config.Instance)
	decode := newDecoder(config.Definition, features)
	csi.RegisterIdentityServer(s.grpc, &identity{config: config})
	here, err := s.registerNode(ctx, config, decode)
	if err != nil {
		stop()
		return nil, err
	}
	if err := s.registerController(config, decode, here); err != nil {
		stop()
		return nil, err
	}
	return s, nil
}

// Features returns the backend's features.
func (s *Server) Features() backends.Features { return s.features }

// registerController registers the controller services. here is the node service in the same process, if any.
func (s *Server) registerController(config Config, decode decoder, here *node.Service) error {
	if config.Instance.Controller == nil {
		return nil
	}
	if config.Holds != "" && s.features.Attach == nil {
		return backends.Errorf(backends.Invalid, "--holds is %q, and the backend %s detaches nothing: leave it out",
			config.Holds, config.Definition.Name)
	}
	holds, err := newHoldReader(config.Holds)
	if err != nil {
		return err
	}
	if holds != nil {
		s.ends = append(s.ends, holds.close)
	}
	volumes := volume.New(config.Instance.Controller, s.features, config.Metrics.Operation)
	csi.RegisterControllerServer(s.grpc, &controller{decode: decode, volumes: volumes, node: here, holds: holds})
	// Registered even if the backend takes no group snapshots: a refusal can prove that the group does not exist.
	csi.RegisterGroupControllerServer(s.grpc, &group{decode: decode, volumes: volumes, features: s.features})
	if s.features.Machines != nil {
		register(s.grpc, machines.Service, machines.Method, machineServer{volumes}.get)
	}
	if s.features.Pools != nil {
		register(s.grpc, pools.Service, pools.Method, poolServer{volumes}.list)
	}
	return nil
}

// registerNode registers the node service and returns it; nil if this process serves no node.
func (s *Server) registerNode(ctx context.Context, config Config, decode decoder) (*node.Service, error) {
	if config.Instance.Node == nil {
		return nil, nil
	}
	volumes, err := node.New(ctx, node.Config{
		Backend: config.Instance.Node, Features: s.features, NodeID: config.NodeID,
		StateDir: config.StateDir, DelegateFSGroup: config.DelegateFSGroup, MaxFormats: config.MaxFormats,
		Contained: config.Contained,
		Trimmed:   config.Metrics.Trimmed, Ownership: config.Metrics.ownership, Log: config.Log,
	})
	if err != nil {
		return nil, err
	}
	config.Metrics.watchGivenUp(volumes.GivenUp)
	s.chores = append(s.chores, volumes.Run)
	if s.features.Inspect != nil {
		watch := &storageWatch{inspect: volumes.StorageHealth, log: config.Log, count: config.Metrics.watchStorage()}
		s.chores = append(s.chores, watch.run)
	}
	if s.features.Measure != nil {
		config.Metrics.watchVolumes(config.NodeID, volumes.Measure)
	}
	s.ends = append(s.ends, volumes.Close)
	csi.RegisterNodeServer(s.grpc, &nodeServer{decode: decode, volumes: volumes, delegate: config.DelegateFSGroup})
	if s.features.Release != nil { // Otherwise a lost record leaves no trace of the use.
		register(s.grpc, uses.Service, uses.Method, useServer{volumes}.get)
	}
	return volumes, nil
}

// Serve answers calls until the context ends. Then it accepts no new calls, lets those under way finish within the
// grace, cancels the rest, and removes the socket. It waits neither for a call that ignores its cancellation nor for an
// idle connection. It also tells the background work to end.
func (s *Server) Serve(ctx context.Context, listener net.Listener, grace time.Duration) error {
	defer s.stop()
	for _, chore := range s.chores {
		go chore(s.life) // not awaited: work that hangs in the kernel must not delay the end
	}
	done := make(chan error, 1)
	go func() { done <- s.grpc.Serve(listener) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	until := time.Now().Add(grace + EndTime - answerTime)
	s.log.Info("stopping: waiting for the requests under way", "grace", grace)
	s.drain(grace)
	s.end(ctx, until)
	select {
	case err := <-done:
		if errors.Is(err, grpc.ErrServerStopped) { // The context ended before the server accepted.
			return nil
		}
		return err
	case <-time.After(answerTime): // A handler hangs.
		return nil
	}
}

const (
	// answerTime is how long the end waits for the answers of requests that have ended or were cancelled.
	answerTime = 500 * time.Millisecond
	// endTime is how long the background work has for its end if the requests took the whole grace. Otherwise it also has
	// the rest of the grace: it may be a repair of a filesystem, which ends only when it is done.
	endTime = 3 * time.Second
	// EndTime is the maximum time that Serve takes after the grace: it waits for answers, connections, background work and
	// the server's return. The process has more to end after it.
	EndTime = 3*answerTime + endTime
)

// drain closes the connections once the requests under way have been answered or the grace is over.
func (s *Server) drain(grace time.Duration) {
	idle, drained := s.gate.close(), make(chan struct{})
	go func() { defer close(drained); s.grpc.GracefulStop() }()
	if !within(idle, grace) {
		s.stop()
		if !within(idle, answerTime) {
			s.log.Warn("stopping although requests are under way: they go on after their end")
		}
	}
	if !within(drained, answerTime) {
		go s.grpc.Stop() // Like GracefulStop, it waits for handlers. Both end with the process.
	}
}

// within reports whether the channel is closed within the limit.
func within(done <-chan struct{}, limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// end tells the background work to end, and waits for it until the given time.
func (s *Server) end(ctx context.Context, until time.Time) {
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), until)
	defer cancel()
	var ending sync.WaitGroup
	for _, end := range s.ends { // in parallel: one that hangs takes no time from the others
		ending.Go(func() {
			if err := end(ctx); err != nil {
				s.log.Warn("stopping without waiting any longer", "for", err)
			}
		})
	}
	ending.Wait()
}

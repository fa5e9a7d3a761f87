package driver

import (
	"context"
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
	"github.com/stowage-csi/stowage/pkg/volume"
)

// Config is what a Server serves.
type Config struct {
	Name       string // the driver's name, such as local.csi.stowage.dev
	Version    string
	Definition backends.Definition
	// Instance is the backend at work; a side that is nil is not offered by this process.
	Instance *backends.Instance
	// Plugin is what the plugin can do with all its processes, each of which must say the same; nil when this one is all.
	Plugin   *Plugin
	NodeID   string
	StateDir string // what the node keeps
	// DelegateFSGroup advertises VOLUME_MOUNT_GROUP: the driver applies fsGroup, not the kubelet.
	DelegateFSGroup bool
	MaxFormats      int  // as node.Config.MaxFormats
	Contained       bool // as node.Config.Contained
	// Holds is the socket at which the driver asks whether a volume may be detached; empty for no question. What is not
	// answered there is not detached.
	Holds   string
	Metrics *Metrics
	Traces  trace.TracerProvider // nil for none
	Log     *slog.Logger
}

// streamWorkers is how many goroutines wait for calls, with stacks that are large enough already. More calls than
// these at a time get goroutines of their own, so that no call waits for another that hangs.
const streamWorkers = 8

// Server is the gRPC server of one driver.
type Server struct {
	grpc     *grpc.Server
	features backends.Features
	life     context.Context
	stop     context.CancelFunc
	chores   []func(context.Context)       // what goes on between requests
	ends     []func(context.Context) error // end what goes on after requests
	gate     *gate
	log      *slog.Logger
}

// NewServer wires the services to the backend and registers those that there are.
func NewServer(ctx context.Context, config Config) (*Server, error) {
	features := backends.Resolve(config.Instance.Controller, config.Instance.Node)
	if config.Plugin == nil {
		config.Plugin = NewPlugin(config.Instance)
	}
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	s := &Server{features: features, life: life, stop: stop, gate: newGate(), log: config.Log}
	limits := newLogLimits()
	s.grpc = grpc.NewServer(append(traceCalls(config.Traces), grpc.NumStreamWorkers(streamWorkers),
		grpc.ChainUnaryInterceptor(
			arrive(), s.gate.admit(), identify(config.Log), record(limits), config.Metrics.measure(),
			translate(newAnswers()), bound(life), giveUp(), rescue(limits), sizes(), lock(keylock.New()),
		))...)
	decode := newDecoder(config.Definition, features)
	csi.RegisterIdentityServer(s.grpc, &identity{config: config})
	volumes, err := s.registerNode(ctx, config, decode)
	if err != nil {
		stop()
		return nil, err
	}
	if err := s.registerController(config, decode, volumes); err != nil {
		stop()
		return nil, err
	}
	return s, nil
}

// Features are what the backend can do.
func (s *Server) Features() backends.Features { return s.features }

// registerController serves the controller; here is the node in the same process, if there is one.
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
	// Also where none are taken: a refusal can come with the proof that there is none.
	csi.RegisterGroupControllerServer(s.grpc, &group{decode: decode, volumes: volumes, features: s.features})
	if s.features.Machines != nil {
		register(s.grpc, machines.Service, machines.Method, machineServer{volumes}.get)
	}
	if s.features.Pools != nil {
		register(s.grpc, pools.Service, pools.Method, poolServer{volumes}.list)
	}
	return nil
}

// registerNode serves the node, and returns it; nil when this process is none.
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
	s.ends = append(s.ends, volumes.Close)
	csi.RegisterNodeServer(s.grpc, &nodeServer{decode: decode, volumes: volumes, delegate: config.DelegateFSGroup})
	return volumes, nil
}

// Serve answers calls until the context ends. Then it begins no more, gives those under way the grace to finish,
// cancels the rest, and removes the socket. It waits neither for a call that ignores its end nor for a connection that
// says nothing. What goes on in the background is told to end, too.
func (s *Server) Serve(ctx context.Context, listener net.Listener, grace time.Duration) error {
	defer s.stop()
	for _, chore := range s.chores {
		go chore(s.life) // not waited for: what hangs in the kernel must not hold up the end
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
		return err
	case <-time.After(answerTime): // A handler hangs.
		return nil
	}
}

const (
	// answerTime is how long the end waits for the answers of requests that have ended, or that were cancelled, to go out.
	answerTime = 500 * time.Millisecond
	// endTime is what the background has to end in when the requests under way took all of the grace. Else it has what
	// they left of that, too: it may be a repair of a filesystem, which ends when it is done.
	endTime = 3 * time.Second
	// EndTime is how long Serve takes after the grace at most: its waits for answers, for the connections, for the
	// background, and for the server to return. The process has more to end after it.
	EndTime = 3*answerTime + endTime
)

// drain ends the connections, when the requests under way have been answered or the grace is over.
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
		go s.grpc.Stop() // It waits for handlers when GracefulStop does, and both end with the process.
	}
}

// within reports whether the channel is closed in time.
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

// end tells what goes on in the background to end, and waits for it, but not for what hangs.
func (s *Server) end(ctx context.Context, until time.Time) {
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), until)
	defer cancel()
	var ending sync.WaitGroup
	for _, end := range s.ends { // side by side: one that hangs takes no time from the rest
		ending.Go(func() {
			if err := end(ctx); err != nil {
				s.log.Warn("stopping without waiting any longer", "for", err)
			}
		})
	}
	ending.Wait()
}

package driver

import (
	"context"
	"log/slog"
	"net"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/keylock"
	"github.com/stowage-csi/stowage/pkg/node"
	"github.com/stowage-csi/stowage/pkg/volume"
)

// Config is what a Server serves.
type Config struct {
	Name       string // the driver's name, such as local.csi.stowage.dev
	Version    string
	Definition backends.Definition
	// Instance is the backend at work; a side that is nil is not offered by this process.
	Instance *backends.Instance
	NodeID   string
	StateDir string // what the node keeps
	// DelegateFSGroup advertises VOLUME_MOUNT_GROUP: the driver applies fsGroup, not the kubelet.
	DelegateFSGroup bool
	MaxFormats      int  // as node.Config.MaxFormats
	Contained       bool // as node.Config.Contained
	Metrics         *Metrics
	Traces          trace.TracerProvider // nil for none
	Log             *slog.Logger
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
	log      *slog.Logger
}

// NewServer wires the services to the backend and registers those that there are.
func NewServer(ctx context.Context, config Config) (*Server, error) {
	features := backends.Resolve(config.Instance.Controller, config.Instance.Node)
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	s := &Server{features: features, life: life, stop: stop, log: config.Log}
	s.grpc = grpc.NewServer(append(traceCalls(config.Traces), grpc.NumStreamWorkers(streamWorkers), grpc.ChainUnaryInterceptor(
		identify(config.Log), record(), config.Metrics.measure(), translate(), rescue(), bound(life), lock(keylock.New()),
	))...)
	decode := newDecoder(config.Definition, features)
	csi.RegisterIdentityServer(s.grpc, &identity{config: config, features: features})
	volumes, err := s.registerNode(ctx, config, decode)
	if err != nil {
		stop()
		return nil, err
	}
	s.registerController(config, decode, volumes)
	return s, nil
}

// Features are what the backend can do.
func (s *Server) Features() backends.Features { return s.features }

// registerController serves the controller; here is the node in the same process, if there is one.
func (s *Server) registerController(config Config, decode decoder, here *node.Service) {
	if config.Instance.Controller == nil {
		return
	}
	volumes := volume.New(config.Instance.Controller, s.features, config.Metrics.Operation)
	csi.RegisterControllerServer(s.grpc, &controller{decode: decode, volumes: volumes, node: here})
	if s.features.Group != nil {
		csi.RegisterGroupControllerServer(s.grpc, &group{decode: decode, volumes: volumes})
	}
}

// registerNode serves the node, and returns it; nil when this process is none.
func (s *Server) registerNode(ctx context.Context, config Config, decode decoder) (*node.Service, error) {
	if config.Instance.Node == nil {
		return nil, nil
	}
	volumes, err := node.New(ctx, node.Config{
		Backend: config.Instance.Node, Features: s.features, NodeID: config.NodeID,
		StateDir: config.StateDir, DelegateFSGroup: config.DelegateFSGroup, MaxFormats: config.MaxFormats, Contained: config.Contained,
		Trimmed: config.Metrics.Trimmed, Ownership: config.Metrics.ownership, Log: config.Log,
	})
	if err != nil {
		return nil, err
	}
	config.Metrics.watchGivenUp(volumes.GivenUp)
	s.chores = append(s.chores, volumes.Run)
	s.ends = append(s.ends, volumes.Close)
	csi.RegisterNodeServer(s.grpc, &nodeServer{decode: decode, volumes: volumes, delegate: config.DelegateFSGroup})
	return volumes, nil
}

// Serve answers calls until the context ends. Then it takes no more, gives those under way the grace
// to finish, cancels the rest, waits for them, and removes the socket. What goes on in the background is told to end, too.
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
	s.log.Info("stopping: waiting for the requests under way", "grace", grace)
	cancel := time.AfterFunc(grace, s.stop)
	defer cancel.Stop()
	s.grpc.GracefulStop()
	s.end(ctx)
	return <-done
}

// endTime is how long the end waits for what goes on in the background. With the grace it is less than Kubernetes gives a pod
// to end in.
const endTime = 5 * time.Second

// end tells what goes on in the background to end, and waits for it, but not for what hangs.
func (s *Server) end(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	for _, end := range s.ends {
		if err := end(ctx); err != nil {
			s.log.Warn("stopping without waiting any longer", "for", err)
		}
	}
}

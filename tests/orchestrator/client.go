package orchestrator

import (
	"context"
	"errors"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// Policy says how a client asks again.
type Policy struct {
	// Deadline bounds one call with all its attempts; it then ends with what the last one ended with.
	Deadline time.Duration
	// Attempt bounds a single attempt, as the sidecars' --timeout does. It is called for each.
	Attempt func() time.Duration
	// Pause is the first wait between two attempts; it grows by half each time, up to twenty times as long.
	Pause time.Duration
}

// DefaultPolicy is that of an impatient orchestrator.
func DefaultPolicy() Policy {
	patience := func() time.Duration { return 15 * time.Second }
	return Policy{Deadline: time.Minute, Attempt: patience, Pause: 10 * time.Millisecond}
}

// Attempt is one message to the driver and how it ended.
type Attempt struct {
	Method  string
	Request any
	Code    codes.Code
	// Broken tells that no answer came: the code is the client's own, not the driver's.
	Broken bool
	Err    error
	Took   time.Duration
}

// Client speaks CSI to a driver. Its calls are asked again, with the same request, until they end with a
// final code or the policy's deadline; they survive the driver's restart.
type Client struct {
	csi.IdentityClient
	csi.ControllerClient
	csi.NodeClient

	places     places
	connection *grpc.ClientConn
}

// Dial makes a client for a driver that need not run yet. It mounts volumes below the workspace's Mounts.
// Observe is told of every attempt, from many goroutines; it may be nil.
func (d *Driver) Dial(policy Policy, observe func(Attempt)) (*Client, error) {
	connection, err := connect(d.Endpoint(), 5*time.Millisecond, grpc.WithUnaryInterceptor(AskAgain(policy, observe)))
	if err != nil {
		return nil, err
	}
	return &Client{
		IdentityClient: csi.NewIdentityClient(connection), ControllerClient: csi.NewControllerClient(connection),
		NodeClient: csi.NewNodeClient(connection),
		places:     places{dir: d.Workspace.Mounts()}, connection: connection,
	}, nil
}

// Close ends the connection.
func (c *Client) Close() error { return c.connection.Close() }

// Final reports whether a code ends an operation. After the others the driver may have done it, or still be
// doing it, and the orchestrator asks again (external-provisioner's and the kubelet's rule).
func Final(code codes.Code) bool {
	switch code {
	case codes.Aborted, codes.Unavailable, codes.DeadlineExceeded, codes.Canceled:
		return false
	default:
		return true
	}
}

// endsCall is Final, but for what the kubelet asks again whatever the answer is, and where that helps: a process that
// somebody starts beside a test has a copy of all mounts for a moment, and until it is gone no volume can be unstaged.
func endsCall(method string, code codes.Code) bool {
	return Final(code) && (method != csi.Node_NodeUnstageVolume_FullMethodName || code != codes.FailedPrecondition)
}

// Patiently has the calls of a connection asked again, at first after the pause, until the limit. It bounds no attempt.
func Patiently(limit, pause time.Duration) grpc.DialOption {
	return grpc.WithUnaryInterceptor(AskAgain(
		Policy{Deadline: limit, Attempt: func() time.Duration { return limit }, Pause: pause}, nil))
}

// AskAgain repeats calls by the policy. Observe is told of every attempt, from many goroutines; it may be nil.
func AskAgain(policy Policy, observe func(Attempt)) grpc.UnaryClientInterceptor {
	if observe == nil {
		observe = func(Attempt) {}
	}
	return func(ctx context.Context, method string, request, reply any, connection *grpc.ClientConn,
		invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
		ctx, cancel := context.WithTimeout(ctx, policy.Deadline)
		defer cancel()
		pause := policy.Pause
		for {
			err := attempt(ctx, policy.Attempt(), observe, method, request,
				func(ctx context.Context, more ...grpc.CallOption) error {
					return invoke(ctx, method, request, reply, connection, append(more, options...)...)
				})
			if endsCall(method, status.Code(err)) {
				return err
			}
			select {
			case <-ctx.Done():
				return errors.Join(ctx.Err(), err)
			case <-time.After(pause):
			}
			pause = min(pause+pause/2, 20*policy.Pause)
		}
	}
}

// attempt sends a request once. An answer carries at least a header or a trailer; a broken connection neither.
func attempt(ctx context.Context, limit time.Duration, observe func(Attempt), method string, request any,
	invoke func(context.Context, ...grpc.CallOption) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var header, trailer metadata.MD
	start := time.Now()
	err := invoke(ctx, grpc.Header(&header), grpc.Trailer(&trailer))
	observe(Attempt{
		Method: method, Request: request, Code: status.Code(err), Err: err, Took: time.Since(start),
		Broken: err != nil && len(header)+len(trailer) == 0,
	})
	return err
}

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

// Policy describes a client's retries.
type Policy struct {
	// Deadline limits a call with all its attempts. The call then returns the last attempt's error.
	Deadline time.Duration
	// Attempt limits a single attempt, as the sidecars' --timeout does. It is called for each attempt.
	Attempt func() time.Duration
	// Pause is the delay before the first retry. It grows by half each time, up to twenty times its length.
	Pause time.Duration
}

// DefaultPolicy is the policy of an impatient orchestrator.
func DefaultPolicy() Policy {
	patience := func() time.Duration { return 15 * time.Second }
	return Policy{Deadline: 2 * time.Minute, Attempt: patience, Pause: 10 * time.Millisecond}
}

// Attempt is one message to the driver and its result.
type Attempt struct {
	Method  string
	Request any
	Code    codes.Code
	// Broken is set if no answer came: the code is then the client's own, not the driver's.
	Broken bool
	Err    error
	Took   time.Duration
}

// Client makes CSI calls to a driver. It retries each call, with the same request, until a final code or the policy's
// deadline. Calls survive the driver's restart.
type Client struct {
	csi.IdentityClient
	csi.ControllerClient
	csi.NodeClient

	places     places
	connection *grpc.ClientConn
}

// Dial creates a client for a driver, which need not be running yet. The client mounts volumes below the workspace's
// Mounts. observe is called with every attempt, from many goroutines; it may be nil.
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

// Final reports whether a code ends an operation. After any other code the driver may have completed the operation, or
// may still work on it, and the orchestrator retries (the rule of external-provisioner and the kubelet).
func Final(code codes.Code) bool {
	switch code {
	case codes.Aborted, codes.Unavailable, codes.DeadlineExceeded, codes.Canceled:
		return false
	default:
		return true
	}
}

// endsCall is like Final, except that FAILED_PRECONDITION does not end NodeUnstageVolume, which the kubelet retries
// after any answer. A process that is started beside a test briefly has a copy of all mounts, and until it ends, no
// volume can be unstaged.
func endsCall(method string, code codes.Code) bool {
	return Final(code) && (method != csi.Node_NodeUnstageVolume_FullMethodName || code != codes.FailedPrecondition)
}

// Patiently makes a connection retry its calls, first after the pause, until the limit. Attempts have no other limit.
func Patiently(limit, pause time.Duration) grpc.DialOption {
	return grpc.WithUnaryInterceptor(AskAgain(
		Policy{Deadline: limit, Attempt: func() time.Duration { return limit }, Pause: pause}, nil))
}

// AskAgain retries calls by the policy. observe is called with every attempt, from many goroutines; it may be nil.
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

// attempt sends a request once. An answer has at least a header or a trailer; a broken connection has neither.
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

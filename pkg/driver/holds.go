package driver

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/holds"
)

// holdTime bounds one query whether a volume may be detached.
const holdTime = 5 * time.Second

// holdReader asks another process whether a volume may be detached. A nil holdReader allows every detachment.
type holdReader struct {
	endpoint string
	conn     *grpc.ClientConn
}

// newHoldReader returns a reader that connects at its first query. Kinds: Invalid.
func newHoldReader(endpoint string, options ...grpc.DialOption) (*holdReader, error) {
	if endpoint == "" {
		return nil, nil
	}
	path, err := socketPath(endpoint)
	if err != nil {
		return nil, fmt.Errorf("--holds: %w", err)
	}
	// The server may be away for seconds, or for minutes, before it is back: gRPC's own pauses grow to two minutes.
	pauses := backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second}
	target := url.URL{Scheme: "unix", Path: path} // gRPC takes %41 for A, and text after ? or # for no part of the path.
	conn, err := grpc.NewClient(target.String(), append(options,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: pauses, MinConnectTimeout: holdTime}))...)
	if err != nil {
		return nil, backends.Errorf(backends.Invalid, "--holds is %q, which is not usable: %w", endpoint, err)
	}
	return &holdReader{endpoint, conn}, nil
}

// check fails if a volume must stay attached to a node, or if there is no answer. Kinds: InUse, Unavailable.
func (h *holdReader) check(ctx context.Context, volume, node string) error {
	if h == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, holdTime)
	defer cancel()
	answer := &structpb.Struct{}
	query := holds.Query{Volume: volume, Node: node}
	err := h.conn.Invoke(ctx, "/"+holds.Service+"/"+holds.Method, query.Encode(), answer)
	if err != nil {
		return backends.Errorf(backends.Unavailable,
			"volume %q stays attached: whether a node uses it is not known, since %q does not say so: %s", volume, h.endpoint,
			status.Convert(err).Message())
	}
	found, err := holds.DecodeHold(answer)
	if err != nil {
		return backends.Errorf(backends.Unavailable, "volume %q stays attached: %q gives no answer: %w", volume, h.endpoint,
			err)
	}
	if found.Held {
		return backends.Errorf(backends.InUse, "volume %q stays attached: %s", volume, found.Says)
	}
	return nil
}

func (h *holdReader) close(context.Context) error { return h.conn.Close() }

// ServeHolds answers drivers that ask whether a volume may be detached, until the context ends. If answer fails, or the
// connection does, the volume stays attached.
func ServeHolds(ctx context.Context, listener net.Listener, log *slog.Logger,
	answer func(context.Context, holds.Query) (holds.Hold, error)) error {
	server := grpc.NewServer(grpc.ChainUnaryInterceptor(identify(log), rescue(newLogLimits())))
	register(server, holds.Service, holds.Method,
		func(ctx context.Context, request *structpb.Struct) (*structpb.Struct, error) {
			found, err := answer(ctx, holds.DecodeQuery(request))
			if err != nil {
				return nil, status.Error(codes.Unavailable, readable(err.Error()))
			}
			return found.Encode(), nil
		})
	defer context.AfterFunc(ctx, server.Stop)()
	if err := server.Serve(listener); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

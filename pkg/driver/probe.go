package driver

import (
	"context"
	"net"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// Probe asks the driver at an endpoint whether it is ready, by the socket that Kubernetes' own calls take. It fails at
// once when nobody listens there.
//
// Kinds: Invalid for the endpoint; Unavailable when the driver gives no answer before ctx ends, or is not ready.
func Probe(ctx context.Context, endpoint string) error {
	socket, err := socketPath(endpoint)
	if err != nil {
		return err
	}
	// The path as it is: as the name of a target it would be a URL, in which "%" means something.
	dial := func(ctx context.Context, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
	conn, err := grpc.NewClient("passthrough:driver", grpc.WithContextDialer(dial),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return backends.Errorf(backends.Invalid, "the driver at %q cannot be asked: %w", endpoint, err)
	}
	defer func() { _ = conn.Close() }() // The answer is there, or what failed is told.
	answer, err := csi.NewIdentityClient(conn).Probe(ctx, &csi.ProbeRequest{})
	if err != nil {
		return backends.Errorf(backends.Unavailable, "the driver at %q does not answer: %w", endpoint, err)
	}
	if ready := answer.GetReady(); ready != nil && !ready.GetValue() { // Nothing said means ready.
		return backends.Errorf(backends.Unavailable, "the driver at %q says that it is not ready", endpoint)
	}
	return nil
}

package driver

import (
	"context"
	"net"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// Probe asks the driver at an endpoint whether it is ready, through the socket that Kubernetes' own calls use. It fails
// at once when nobody listens there.
//
// Kinds: Invalid for the endpoint; Unavailable when the driver gives no answer before ctx ends, or is not ready.
func Probe(ctx context.Context, endpoint string) error {
	socket, err := socketPath(endpoint)
	if err != nil {
		return err
	}
	// The dialer takes the path itself: as a target's name it would be a URL, in which "%" has a meaning.
	dial := func(ctx context.Context, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
	conn, err := grpc.NewClient("passthrough:driver", grpc.WithContextDialer(dial),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return backends.Errorf(backends.Invalid, "the driver at %q cannot be asked: %w", endpoint, err)
	}
	defer func() { _ = conn.Close() }() // The answer has arrived, or the failure is returned.
	answer, err := csi.NewIdentityClient(conn).Probe(ctx, &csi.ProbeRequest{})
	if err != nil {
		return backends.Errorf(backends.Unavailable, "the driver at %q does not answer: %w", endpoint, err)
	}
	if ready := answer.GetReady(); ready != nil && !ready.GetValue() { // An unset value means ready.
		return backends.Errorf(backends.Unavailable, "the driver at %q says that it is not ready", endpoint)
	}
	return nil
}

package csiclient

import (
	"context"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/stowage-csi/stowage/pkg/machines"
)

// answering returns a client of a driver that answers every request with an error.
func answering(t *testing.T, code codes.Code, says string) *Client {
	t.Helper()
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error {
		return status.Error(code, says)
	}))
	listener, done := bufconn.Listen(1<<16), make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	connection, err := grpc.NewClient("passthrough:///in-memory",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := connection.Close(); err != nil {
			t.Error(err)
		}
		server.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return &Client{connection: connection}
}

// TestMachineThatIsMissing checks that NotFound is an answer, and that every other error stays an error.
func TestMachineThatIsMissing(t *testing.T) {
	const says = "there is no instance i-1"
	m, err := answering(t, codes.NotFound, says).Machine(t.Context(), machines.Query{Node: "i-1"})
	if want := (machines.Machine{State: machines.Missing, Says: says}); err != nil || m != want {
		t.Errorf("got %+v, %v, want %+v", m, err, want)
	}
	for _, code := range []codes.Code{codes.Unavailable, codes.InvalidArgument, codes.Unimplemented, codes.Internal} {
		m, err := answering(t, code, says).Machine(t.Context(), machines.Query{Node: "i-1"})
		if err == nil || Message(err) != says || m != (machines.Machine{}) {
			t.Errorf("%s: got %+v, %v, want an error", code, m, err)
		}
	}
}

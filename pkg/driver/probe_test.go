package driver

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// answering is an identity service with a given answer to Probe.
type answering struct {
	csi.UnimplementedIdentityServer
	response *csi.ProbeResponse
}

func (a answering) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return a.response, nil
}

// listening is a socket on which nobody answers yet. "%" in its path has no meaning.
func listening(t *testing.T) (endpoint string, listener net.Listener) {
	t.Helper()
	dir, err := os.MkdirTemp("", "stowage-") //nolint:usetesting // t.TempDir holds the test's name: too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	endpoint = "unix://" + filepath.Join(dir, "s%20")
	if listener, err = Listen(t.Context(), endpoint); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return endpoint, listener
}

// TestProbeBelievesTheAnswer expects the driver's answer, and ready for an unset value, as CSI says.
func TestProbeBelievesTheAnswer(t *testing.T) {
	for name, row := range map[string]struct {
		ready *wrapperspb.BoolValue
		fails string
	}{
		"ready":        {wrapperspb.Bool(true), ""},
		"not ready":    {wrapperspb.Bool(false), "not ready"},
		"nothing said": {nil, ""},
	} {
		endpoint, listener := listening(t)
		server := grpc.NewServer()
		csi.RegisterIdentityServer(server, answering{response: &csi.ProbeResponse{Ready: row.ready}})
		go func() { _ = server.Serve(listener) }() // It ends with the test.
		err := Probe(t.Context(), endpoint)
		server.Stop()
		if (err != nil) != (row.fails != "") || err != nil && !strings.Contains(err.Error(), row.fails) {
			t.Errorf("%s: %v, want a failure with %q", name, err, row.fails)
		}
	}
}

// TestProbeOfWhoDoesNotAnswer expects the probe of a stuck driver to end within its time, and the probe of a missing
// driver to fail at once.
func TestProbeOfWhoDoesNotAnswer(t *testing.T) {
	endpoint, listener := listening(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		if _, err := listener.Accept(); err == nil { // Nothing is read from it.
			cancel()
		}
	}()
	if err := Probe(ctx, endpoint); !backends.Is(err, backends.Unavailable) || ctx.Err() == nil {
		t.Errorf("nobody reads what comes to the socket: %v, want Unavailable at the end of the time", err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	if err := Probe(t.Context(), endpoint); !backends.Is(err, backends.Unavailable) {
		t.Errorf("nobody serves: %v, want Unavailable", err)
	}
	if err := Probe(t.Context(), "tcp://127.0.0.1:1"); !backends.Is(err, backends.Invalid) {
		t.Errorf("an endpoint that is no socket: %v, want Invalid", err)
	}
}

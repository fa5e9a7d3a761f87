package driver

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestGate: while the server stops, gRPC rejects new connections, and calls of existing ones only later. The gate
// rejects the calls before that, while the requests under way are awaited.
func TestGate(t *testing.T) {
	g, ctx := newGate(), t.Context()
	call := func(handler func() error) error {
		_, err := g.admit()(ctx, nil, nil, func(context.Context, any) (any, error) { return nil, handler() })
		return err
	}
	began, end, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() { ended <- call(func() error { close(began); <-end; return nil }) }()
	<-began
	idle := g.close()
	err := call(func() error { t.Error("a request was begun after the end"); return nil })
	if status.Code(err) != codes.Unavailable {
		t.Errorf("a request after the end is answered %v, want Unavailable", err)
	}
	select {
	case <-idle:
		t.Error("the gate is idle although a request is under way, and one was turned away")
	default:
	}
	close(end)
	if err := <-ended; err != nil {
		t.Errorf("the request under way is answered %v", err)
	}
	<-idle
}

// TestGateOfNobody: without requests under way, the end waits for nothing.
func TestGateOfNobody(t *testing.T) {
	g := newGate()
	nothing := func(context.Context, any) (any, error) { return nil, nil }
	if _, err := g.admit()(t.Context(), nil, nil, nothing); err != nil {
		t.Errorf("a request before the end is answered %v", err)
	}
	<-g.close()
}

// TestGateOfTheServer: the server's requests go through its gate.
func TestGateOfTheServer(t *testing.T) {
	s := serve(t, full{}, time.Second)
	<-s.server.gate.close()
	_, err := s.client.ControllerGetCapabilities(t.Context(), &csi.ControllerGetCapabilitiesRequest{})
	if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "stopping") {
		t.Errorf("a request after the gate was closed is answered %v, want Unavailable", err)
	}
	s.server.gate = newGate() // The end of the server closes its own gate.
}

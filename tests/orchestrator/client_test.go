package orchestrator

import (
	"context"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// scripted answers Probe with one code after another, and then with success.
type scripted struct {
	csi.UnimplementedIdentityServer
	mu    sync.Mutex
	codes []codes.Code
}

func (s *scripted) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.codes) == 0 {
		return &csi.ProbeResponse{}, nil
	}
	code := s.codes[0]
	s.codes = s.codes[1:]
	return nil, status.Error(code, "as the script says")
}

// answering serves Probe.
func answering(answers ...codes.Code) func(*grpc.Server) {
	return func(server *grpc.Server) { csi.RegisterIdentityServer(server, &scripted{codes: answers}) }
}

func serve(t *testing.T, socket string, register func(*grpc.Server)) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	register(server)
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestClientAsksAgainUntilTheAnswerIsFinal(t *testing.T) {
	tests := []struct {
		name    string
		answers []codes.Code
		want    codes.Code
		seen    []codes.Code
	}{
		{"at once", nil, codes.OK, []codes.Code{codes.OK}},
		{
			"non-final codes", []codes.Code{codes.Aborted, codes.Unavailable, codes.DeadlineExceeded, codes.Canceled}, codes.OK,
			[]codes.Code{codes.Aborted, codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.OK},
		},
		{"a final code", []codes.Code{codes.Aborted, codes.Internal}, codes.Internal,
			[]codes.Code{codes.Aborted, codes.Internal}},
		{"another final code", []codes.Code{codes.ResourceExhausted}, codes.ResourceExhausted,
			[]codes.Code{codes.ResourceExhausted}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := &Driver{Workspace: workspace(t)}
			serve(t, d.Workspace.Socket(), answering(test.answers...))
			var seen []codes.Code
			client := dial(t, d, DefaultPolicy(), func(a Attempt) {
				seen = append(seen, a.Code)
				if a.Broken {
					t.Errorf("the answer %s counts as a broken connection", a.Code)
				}
			})
			if _, err := client.Probe(t.Context(), &csi.ProbeRequest{}); status.Code(err) != test.want {
				t.Errorf("the call ended with %v, want %s", err, test.want)
			}
			if !slices.Equal(seen, test.seen) {
				t.Errorf("attempts ended with %v, want %v", seen, test.seen)
			}
		})
	}
}

func dial(t *testing.T, d *Driver, policy Policy, observe func(Attempt)) *Client {
	t.Helper()
	client, err := d.Dial(policy, observe)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return client
}

func TestClientWaitsForTheDriver(t *testing.T) {
	d := &Driver{Workspace: workspace(t)}
	broken := make(chan struct{}, 1000)
	client := dial(t, d, DefaultPolicy(), func(a Attempt) {
		if a.Broken {
			broken <- struct{}{}
		}
	})
	answered := make(chan error, 1)
	go func() {
		_, err := client.Probe(t.Context(), &csi.ProbeRequest{})
		answered <- err
	}()
	<-broken // The driver does not listen yet.
	serve(t, d.Workspace.Socket(), answering())
	if err := <-answered; err != nil {
		t.Errorf("the driver came late, and the call failed: %v", err)
	}
}

func TestClientGivesUpAtTheDeadline(t *testing.T) {
	d := &Driver{Workspace: workspace(t)}
	policy := DefaultPolicy()
	policy.Deadline = 50 * time.Millisecond
	client := dial(t, d, policy, nil)
	if _, err := client.Probe(t.Context(), &csi.ProbeRequest{}); err == nil {
		t.Error("nobody listens, and the call succeeded")
	}
}

// held is a node whose volume another process has mounted at the first calls.
type held struct {
	csi.UnimplementedNodeServer
	refusals int
}

func (h *held) NodeUnstageVolume(
	context.Context, *csi.NodeUnstageVolumeRequest,
) (*csi.NodeUnstageVolumeResponse, error) {
	if h.refusals--; h.refusals >= 0 {
		return nil, status.Error(codes.FailedPrecondition, "process 1 has it mounted in another mount namespace")
	}
	return &csi.NodeUnstageVolumeResponse{}, nil
}

func TestClientUnstagesWhatSomebodyHadMounted(t *testing.T) {
	d := &Driver{Workspace: workspace(t)}
	serve(t, d.Workspace.Socket(), func(server *grpc.Server) { csi.RegisterNodeServer(server, &held{refusals: 2}) })
	attempts := 0
	client := dial(t, d, DefaultPolicy(), func(Attempt) { attempts++ })
	if _, err := client.NodeUnstageVolume(t.Context(), &csi.NodeUnstageVolumeRequest{}); err != nil || attempts != 3 {
		t.Errorf("the call ended with %v after %d attempts, want success after 3", err, attempts)
	}
}

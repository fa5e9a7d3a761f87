package main

import (
	"context"
	"net"
	"path/filepath"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// held is a node whose volume another process has mounted at the first call.
type held struct {
	csi.UnimplementedNodeServer
	calls int
}

func (h *held) NodeUnstageVolume(
	context.Context, *csi.NodeUnstageVolumeRequest,
) (*csi.NodeUnstageVolumeResponse, error) {
	if h.calls++; h.calls == 1 {
		return nil, status.Error(codes.FailedPrecondition, "process 1 has it mounted in another mount namespace")
	}
	return &csi.NodeUnstageVolumeResponse{}, nil
}

// A process that is started during the benchmark briefly has a copy of its mounts. This causes no failure.
func TestVolumeThatSomebodyHadMounted(t *testing.T) {
	socket := filepath.Join(shortDir(t), "socket")
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	csi.RegisterNodeServer(server, &held{})
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	defer func() {
		server.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	conn, err := dial(socket, patient())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }() // The server is stopped next.
	v := newVolume(newClient(conn), options{}, imagePool, "v", t.TempDir())
	if err := limited(t.Context(), v.unstage); err != nil {
		t.Error(err)
	}
}

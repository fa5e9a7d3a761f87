package driver

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/machines"
)

// anywhere attaches every volume to every node.
type anywhere struct{ backends.Backend }

func (anywhere) Get(_ context.Context, handle string) (*backends.Volume, error) {
	return &backends.Volume{Handle: handle, Access: backends.Access{Types: []backends.AccessType{backends.Mount},
		Modes: backends.SingleNodeModes()}}, nil
}

func (anywhere) Attach(context.Context, backends.AttachRequest) (map[string]string, error) {
	return map[string]string{}, nil
}

func (anywhere) Detach(context.Context, string, string) error { return nil }

func (anywhere) Machine(context.Context, backends.MachineQuery) (backends.Machine, error) {
	return backends.Machine{State: backends.MachineRunning}, nil
}

// TestNodeIDsAreAsLongAsTheSpecificationAllows: every request accepts an ID that NodeGetInfo may return.
func TestNodeIDsAreAsLongAsTheSpecificationAllows(t *testing.T) {
	s := serve(t, anywhere{}, time.Second)
	for length, want := range map[int]codes.Code{128: codes.OK, 256: codes.OK, 257: codes.InvalidArgument} {
		node := strings.Repeat("n", length)
		_, published := s.client.ControllerPublishVolume(t.Context(), &csi.ControllerPublishVolumeRequest{VolumeId: "v",
			NodeId: node, VolumeCapability: mountCapability(csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, "")})
		_, unpublished := s.client.ControllerUnpublishVolume(t.Context(),
			&csi.ControllerUnpublishVolumeRequest{VolumeId: "v", NodeId: node})
		found := s.connection.Invoke(t.Context(), "/"+machines.Service+"/"+machines.Method,
			machines.Query{Node: node}.Encode(), &structpb.Struct{})
		for what, err := range map[string]error{"publish": published, "unpublish": unpublished, "machine": found} {
			if status.Code(err) != want || err != nil && !strings.Contains(err.Error(), "at most 256") {
				t.Errorf("%s with a node ID of %d bytes: %v, want %s", what, length, err, want)
			}
		}
	}
	_, err := s.client.ControllerUnpublishVolume(t.Context(), &csi.ControllerUnpublishVolumeRequest{VolumeId: "v"})
	if err != nil {
		t.Errorf("unpublish from all nodes: %v", err)
	}
}

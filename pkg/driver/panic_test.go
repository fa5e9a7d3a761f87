package driver

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/status"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// tripping is a backend that panics after it has created its first volume.
type tripping struct {
	backends.Backend
	made chan string // the handles of created volumes, including those that no caller got
}

func (b tripping) Create(ctx context.Context, spec backends.Spec) (*backends.Volume, error) {
	volume, err := b.Backend.Create(ctx, spec)
	if err != nil {
		return nil, err
	}
	b.made <- volume.Handle
	if len(b.made) == 1 {
		panic("out of cheese")
	}
	return volume, nil
}

// TestWhatAPanicMadeIsFound: a panic after the volume's creation does not prove that nothing was created.
// csi-provisioner retries, and gets that volume.
func TestWhatAPanicMadeIsFound(t *testing.T) {
	definition, instance := memoryBackend(t)
	backend := tripping{instance.Controller, make(chan string, 9)}
	s := serveConfig(t, Config{Definition: definition, Instance: &backends.Instance{Controller: backend},
		Log: slog.New(slog.DiscardHandler)}, time.Second)
	request := &csi.CreateVolumeRequest{Name: "v",
		VolumeCapabilities: capabilityOf(mountCapability(csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, ""))}
	_, err := s.client.CreateVolume(t.Context(), request)
	if code := status.Code(err); !slices.Contains(callerOf(t, "CreateVolume").open, code) {
		t.Errorf("the answer to a panic is %s: csi-provisioner forgets what was made", code)
	}
	again, err := s.client.CreateVolume(t.Context(), request)
	if err != nil {
		t.Fatalf("asked again: %v", err)
	}
	if made := <-backend.made; len(backend.made) > 0 || again.GetVolume().GetVolumeId() != made {
		t.Errorf("asked again, it is %s, and another one was made; want %s", again.GetVolume().GetVolumeId(), made)
	}
}

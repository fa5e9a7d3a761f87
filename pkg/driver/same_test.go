package driver

import (
	"log/slog"
	"maps"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// TestAVolumeIsAlwaysReportedTheSame: every call returns the context of CreateVolume (CSI, Volume.volume_context). A
// request with other mutable parameters is for another volume.
func TestAVolumeIsAlwaysReportedTheSame(t *testing.T) {
	definition, instance := memoryBackend(t)
	s := serveConfig(t, Config{Definition: definition, Instance: &backends.Instance{Controller: instance.Controller},
		Log: slog.New(slog.DiscardHandler)}, time.Second)
	request := &csi.CreateVolumeRequest{
		Name: "v", VolumeCapabilities: capabilityOf(mountCapability(csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, "")),
		Parameters:        map[string]string{"fsGroupChangePolicy": "OnRootMismatch", "fstrimInterval": "24h"},
		MutableParameters: map[string]string{"readAheadKiB": "64"},
	}
	made, err := s.client.CreateVolume(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	want := made.GetVolume().GetVolumeContext()
	again, err := s.client.CreateVolume(t.Context(), request)
	if err != nil || !maps.Equal(again.GetVolume().GetVolumeContext(), want) {
		t.Errorf("made again: %v, %v; want %v", again, err, want)
	}
	got, err := s.client.ControllerGetVolume(t.Context(),
		&csi.ControllerGetVolumeRequest{VolumeId: made.GetVolume().GetVolumeId()})
	if err != nil || !maps.Equal(got.GetVolume().GetVolumeContext(), want) {
		t.Errorf("ControllerGetVolume: %v, %v; want %v", got.GetVolume().GetVolumeContext(), err, want)
	}
	list, err := s.client.ListVolumes(t.Context(), &csi.ListVolumesRequest{})
	if err != nil || len(list.GetEntries()) != 1 || !maps.Equal(list.GetEntries()[0].GetVolume().GetVolumeContext(),
		want) {
		t.Errorf("ListVolumes: %v, %v; want %v", list, err, want)
	}
	request.MutableParameters = map[string]string{"readAheadKiB": "128"}
	if _, err := s.client.CreateVolume(t.Context(), request); status.Code(err) != codes.AlreadyExists {
		t.Errorf("with other mutable parameters: %v, want AlreadyExists", err)
	}
}

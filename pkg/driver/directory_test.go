package driver

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/backendtest"
	"github.com/stowage-csi/stowage/pkg/backends/local"
	"github.com/stowage-csi/stowage/pkg/mountoptions"
	"github.com/stowage-csi/stowage/tests/localpools"
)

// TestDirectoriesHaveNoFilesystem: no filesystem can be made on a volume of a directory pool of local. CreateVolume
// refuses a filesystem of the class or of the capability, ValidateVolumeCapabilities does not confirm it, and both say
// why. A volume without a filesystem is created. An image pool creates what a directory pool refused.
func TestDirectoriesHaveNoFilesystem(t *testing.T) {
	s := serveLocal(t)
	filesystems := append(mountoptions.Filesystems(), "nfs", "ntfs")
	for _, fsType := range filesystems {
		for class, asked := range map[string]string{"": fsType, fsType: ""} {
			_, err := s.client.CreateVolume(t.Context(), volumeIn(localpools.Directory, class, asked))
			if status.Code(err) != codes.InvalidArgument || !saysDirectory(err.Error(), fsType) {
				t.Errorf("CreateVolume with the filesystem %q of the class and %q of the capability: %v", class, asked, err)
			}
		}
	}
	left, err := s.client.ListVolumes(t.Context(), &csi.ListVolumesRequest{})
	if err != nil || len(left.GetEntries()) > 0 {
		t.Errorf("refused volumes are there: %v, %v", left, err)
	}
	made, err := s.client.CreateVolume(t.Context(), volumeIn(localpools.Directory, "", ""))
	if err != nil {
		t.Fatal(err)
	}
	for _, fsType := range append(filesystems, "") {
		answer, err := s.client.ValidateVolumeCapabilities(t.Context(), &csi.ValidateVolumeCapabilitiesRequest{
			VolumeId: made.GetVolume().GetVolumeId(), VolumeCapabilities: writing(fsType)})
		confirmed := answer.GetConfirmed() != nil
		if err != nil || confirmed != (fsType == "") || !confirmed && !saysDirectory(answer.GetMessage(), fsType) {
			t.Errorf("ValidateVolumeCapabilities with the filesystem %q: %v, %v", fsType, answer, err)
		}
	}
	for _, fsType := range mountoptions.Filesystems() {
		if _, err := s.client.CreateVolume(t.Context(), volumeIn(localpools.Image, "", fsType)); err != nil {
			t.Errorf("CreateVolume in an image pool with the filesystem %q: %v", fsType, err)
		}
	}
}

// saysDirectory reports whether a message names the filesystem, the type of the pool, and what would be right.
func saysDirectory(message, fsType string) bool {
	return strings.Contains(message, `"`+fsType+`"`) && strings.Contains(message, "is a directory") &&
		strings.Contains(message, "name none")
}

// volumeIn requests a volume with the filesystem of the class, and with that of the capability; empty for none.
func volumeIn(pool, class, asked string) *csi.CreateVolumeRequest {
	r := &csi.CreateVolumeRequest{
		Name: pool + class + asked, Parameters: map[string]string{"pool": pool},
		CapacityRange: &csi.CapacityRange{RequiredBytes: 512 << 20}, VolumeCapabilities: writing(asked),
	}
	if class != "" {
		r.Parameters["csi.storage.k8s.io/fstype"] = class
	}
	return r
}

func writing(fsType string) []*csi.VolumeCapability {
	return capabilityOf(mountCapability(csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, fsType))
}

// serveLocal serves local with a pool of each type.
func serveLocal(t *testing.T) serving {
	t.Helper()
	definition := local.Definition()
	instance := opened(t, definition, localpools.Config())
	t.Cleanup(func() {
		if err := backendtest.Close(t.Context(), instance); err != nil {
			t.Error(err)
		}
	})
	return serveConfig(t, Config{Definition: definition, Instance: &backends.Instance{Controller: instance.Controller},
		Log: slog.New(slog.DiscardHandler)}, time.Second)
}

package driver

import (
	"fmt"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestOversizedFieldsAreRefused refuses a field that is larger than the specification allows, and accepts one that just
// fits.
func TestOversizedFieldsAreRefused(t *testing.T) {
	long := func(bytes int) map[string]string { return map[string]string{"k": strings.Repeat("v", bytes-1)} }
	plain := mountCapability(csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, "")
	s := everything(t)
	for field, call := range map[string]func(bytes int) error{
		"parameters": func(bytes int) error {
			_, err := s.client.CreateVolume(t.Context(), &csi.CreateVolumeRequest{Name: "n", Parameters: long(bytes),
				VolumeCapabilities: capabilityOf(plain)})
			return err
		},
		"mount_flags": func(bytes int) error {
			c := mountCapability(csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, "")
			c.GetMount().MountFlags = []string{"noatime", strings.Repeat("f", bytes-len("noatime"))}
			_, err := s.client.CreateVolume(t.Context(), &csi.CreateVolumeRequest{Name: "n",
				VolumeCapabilities: capabilityOf(c)})
			return err
		},
		"volume_context": func(bytes int) error {
			_, err := csi.NewNodeClient(s.connection).NodeStageVolume(t.Context(), &csi.NodeStageVolumeRequest{VolumeId: "v",
				VolumeContext: long(bytes), StagingTargetPath: "/nowhere/x", VolumeCapability: plain})
			return err
		},
	} {
		for bytes, refused := range map[int]bool{mostMap: false, mostMap + 1: true} {
			err := call(bytes)
			says := strings.Contains(fmt.Sprint(err), fmt.Sprintf("%s has %d bytes", field, bytes))
			if says != refused || refused && status.Code(err) != codes.InvalidArgument {
				t.Errorf("%s of %d bytes: %v, want InvalidArgument for its size: %t", field, bytes, err, refused)
			}
		}
	}
	secret := &csi.CreateVolumeRequest{Secrets: long(2 * mostMap)}
	if err := checkSizes(secret.ProtoReflect()); err != nil {
		t.Errorf("secrets of %d bytes: %v", 2*mostMap, err)
	}
}

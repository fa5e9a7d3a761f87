package sanity

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/stowage-csi/stowage/tests/inprocess"
	"github.com/stowage-csi/stowage/tests/orchestrator"
)

// TestStageExceedsCapabilities stages volumes with a capability that they do not have, which a PersistentVolume created
// by hand can request: a directory as a device, and a device as a filesystem. csi-sanity has no such test.
func TestStageExceedsCapabilities(t *testing.T) {
	for _, s := range chosen(t) {
		made, other := capability(s.access), capability("block")
		switch {
		case s.backend == "ebs": // A node knows only a volume's size: the controller refuses to attach it.
			continue
		case s.access == "block":
			other = capability("mount")
		case s.backend == "memory" || s.parameters["pool"] == "image": // It can be staged both ways.
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			driver := inprocess.Start(t, inprocess.Options{Backend: s.backend, Definition: s.definition, Config: s.config,
				NodeID: s.nodeID, Topology: s.topology})
			conn := patient(t, driver)
			volume, err := csi.NewControllerClient(conn).CreateVolume(t.Context(), &csi.CreateVolumeRequest{
				Name: "one", VolumeCapabilities: []*csi.VolumeCapability{made}, Parameters: s.parameters})
			if err != nil {
				t.Fatal(err)
			}
			staging := filepath.Join(t.TempDir(), "staging")
			if err := os.Mkdir(staging, 0o755); err != nil {
				t.Fatal(err)
			}
			_, err = csi.NewNodeClient(conn).NodeStageVolume(t.Context(), &csi.NodeStageVolumeRequest{
				VolumeId: volume.GetVolume().GetVolumeId(), VolumeContext: volume.GetVolume().GetVolumeContext(),
				StagingTargetPath: staging, VolumeCapability: other})
			if status.Code(err) != codes.FailedPrecondition { // spec.md 1.13, NodeStageVolume Errors: Exceeds capabilities
				t.Errorf("a volume for %s is staged for another use: %v, want FAILED_PRECONDITION", s.access, err)
			}
		})
	}
}

// patient returns a connection that retries as sidecars do: another driver may have just worked on the share.
func patient(t *testing.T, driver *inprocess.Driver) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(driver.Endpoint, grpc.WithTransportCredentials(insecure.NewCredentials()),
		orchestrator.Patiently(2*time.Minute, 10*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // no call is in progress
	return conn
}

func capability(access string) *csi.VolumeCapability {
	c := &csi.VolumeCapability{AccessMode: &csi.VolumeCapability_AccessMode{
		Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER}}
	if access == "block" {
		c.AccessType = &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}
	} else {
		c.AccessType = &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}}
	}
	return c
}

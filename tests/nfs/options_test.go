package nfs

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// A PersistentVolume's mount options reach the backend, which refuses those that are unknown or lead elsewhere.
func TestMountOptions(t *testing.T) {
	w := newWorld(t)
	v, err := w.create(t.Context(), "options")
	if err != nil {
		t.Fatal(err)
	}
	for option, want := range map[string]codes.Code{
		"addr=6.6.6.6": codes.InvalidArgument, "soft,addr=6.6.6.6": codes.InvalidArgument, "port=2050": codes.InvalidArgument,
		"clientaddr=6.6.6.6": codes.InvalidArgument, "bind": codes.InvalidArgument, "nfsvers=5": codes.InvalidArgument,
		"noatime": codes.OK,
	} {
		staging := filepath.Join(t.TempDir(), "staging")
		if err := os.Mkdir(staging, 0o700); err != nil {
			t.Fatal(err)
		}
		asked := capability()
		asked.GetMount().MountFlags = []string{option}
		node := csi.NewNodeClient(w.Conn)
		_, err := node.NodeStageVolume(t.Context(), &csi.NodeStageVolumeRequest{
			VolumeId: v.GetVolumeId(), VolumeContext: v.GetVolumeContext(), StagingTargetPath: staging, VolumeCapability: asked,
		})
		if code := status.Code(err); code != want {
			t.Errorf("mount option %q: %v, want %s", option, err, want)
		}
		if _, err := node.NodeUnstageVolume(t.Context(),
			&csi.NodeUnstageVolumeRequest{VolumeId: v.GetVolumeId(), StagingTargetPath: staging}); err != nil {
			t.Error(err)
		}
	}
	if err := w.delete(t.Context(), v.GetVolumeId()); err != nil {
		t.Error(err)
	}
}

package driver

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/tests/testfs"
)

// TestNoRefusalIsFinalForWhatIsMounted: the kubelet takes a final code as proof that nothing is mounted, also if the
// request was refused before anybody looked.
func TestNoRefusalIsFinalForWhatIsMounted(t *testing.T) {
	testfs.NeedRoot(t)
	backend := folders{root: t.TempDir()}
	if err := os.Mkdir(filepath.Join(backend.root, "v"), 0o755); err != nil {
		t.Fatal(err)
	}
	s := serveConfig(t, Config{
		Instance: &backends.Instance{Controller: backend, Node: backend}, NodeID: "node-1", StateDir: t.TempDir(),
		Log: slog.New(slog.DiscardHandler),
	}, time.Second)
	node, staging, target := csi.NewNodeClient(s.connection), t.TempDir(), filepath.Join(t.TempDir(), "target")
	t.Cleanup(func() { // Only after a failure, something is left.
		_ = unix.Unmount(target, 0)
		_ = unix.Unmount(staging, 0)
	})
	good := mountCapability(csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, "")
	noMode, group, long := mountCapability(0, ""), mountCapability(good.GetAccessMode().GetMode(), ""),
		mountCapability(good.GetAccessMode().GetMode(), "")
	group.GetMount().VolumeMountGroup, long.GetMount().MountFlags = "staff", []string{strings.Repeat("x", mostMap+1)}
	stage := func(capability *csi.VolumeCapability, volumeContext map[string]string) error {
		_, err := node.NodeStageVolume(t.Context(), &csi.NodeStageVolumeRequest{VolumeId: "v", StagingTargetPath: staging,
			VolumeCapability: capability, VolumeContext: volumeContext})
		return err
	}
	publish := func(capability *csi.VolumeCapability) error {
		_, err := node.NodePublishVolume(t.Context(), &csi.NodePublishVolumeRequest{VolumeId: "v", StagingTargetPath: staging,
			TargetPath: target, VolumeCapability: capability})
		return err
	}
	refused := func(want codes.Code, stagedAt, publishedAt string) {
		t.Helper()
		for what, refusal := range map[string]struct {
			err error
			at  string
		}{
			"no mode":                  {stage(noMode, nil), stagedAt},
			"a group's name":           {stage(group, nil), stagedAt},
			"long mount flags":         {stage(long, nil), stagedAt},
			"a newer context":          {stage(good, map[string]string{"stowage.dev/context": "2"}), stagedAt},
			"a newer setting":          {stage(good, map[string]string{"fsGroupChangePolicy": "Never"}), stagedAt},
			"a target without mode":    {publish(noMode), publishedAt},
			"long flags of the target": {publish(long), publishedAt},
		} {
			if status.Code(refusal.err) != want || !strings.Contains(refusal.err.Error(), refusal.at) {
				t.Errorf("%s is answered %v, want %s that names %q", what, refusal.err, want, refusal.at)
			}
		}
	}
	refused(codes.InvalidArgument, "", "")
	if err := stage(good, nil); err != nil {
		t.Fatal(err)
	}
	if err := publish(good); err != nil {
		t.Fatal(err)
	}
	refused(codes.Unavailable, staging, target)
	if _, err := node.NodeUnpublishVolume(t.Context(), &csi.NodeUnpublishVolumeRequest{VolumeId: "v",
		TargetPath: target}); err != nil {
		t.Fatal(err)
	}
	if _, err := node.NodeUnstageVolume(t.Context(), &csi.NodeUnstageVolumeRequest{VolumeId: "v",
		StagingTargetPath: staging}); err != nil {
		t.Fatal(err)
	}
	refused(codes.InvalidArgument, "", "")
}

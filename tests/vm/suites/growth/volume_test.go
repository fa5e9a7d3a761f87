package growth

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/tests/inprocess"
)

// volume is a published volume of the local backend's image pool, used as the kubelet and the sidecars do.
type volume struct {
	*testing.T
	driver          *inprocess.Driver
	id              string
	context         map[string]string
	capability      *csi.VolumeCapability
	staging, target string
}

func newVolume(t *testing.T, fsType string, bytes int64) *volume {
	t.Helper()
	dir := t.TempDir()
	v := &volume{
		T: t, driver: inprocess.Start(t, inprocess.Options{Backend: "local"}),
		staging: filepath.Join(dir, "staging"), target: filepath.Join(dir, "pod", "target"),
		capability: &csi.VolumeCapability{
			AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
			AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{FsType: fsType}},
		},
	}
	made, err := csi.NewControllerClient(v.driver.Conn).CreateVolume(v.ctx(), &csi.CreateVolumeRequest{
		Name: "grown", CapacityRange: &csi.CapacityRange{RequiredBytes: bytes},
		VolumeCapabilities: []*csi.VolumeCapability{v.capability}, Parameters: map[string]string{"pool": "image"},
	})
	v.must(err)
	v.id, v.context = made.GetVolume().GetVolumeId(), made.GetVolume().GetVolumeContext()
	for _, path := range []string{v.staging, filepath.Dir(v.target)} {
		v.must(os.MkdirAll(path, 0o755))
	}
	t.Cleanup(func() {
		v.putAway()
		_, err := csi.NewControllerClient(v.driver.Conn).DeleteVolume(v.ctx(), &csi.DeleteVolumeRequest{VolumeId: v.id})
		v.check(err)
	})
	v.show()
	return v
}

// ctx returns the test's context, without the cancellation when the test's cleanup begins.
func (v *volume) ctx() context.Context { return context.WithoutCancel(v.Context()) }

func (v *volume) must(err error) {
	v.Helper()
	if err != nil {
		v.Fatal(err)
	}
}

func (v *volume) check(err error) {
	v.Helper()
	if err != nil {
		v.Error(err)
	}
}

// show stages and publishes the volume.
func (v *volume) show() {
	v.Helper()
	node := csi.NewNodeClient(v.driver.Conn)
	_, err := node.NodeStageVolume(v.ctx(), &csi.NodeStageVolumeRequest{
		VolumeId: v.id, StagingTargetPath: v.staging, VolumeCapability: v.capability, VolumeContext: v.context,
	})
	v.must(err)
	_, err = node.NodePublishVolume(v.ctx(), &csi.NodePublishVolumeRequest{
		VolumeId: v.id, StagingTargetPath: v.staging, TargetPath: v.target, VolumeCapability: v.capability,
		VolumeContext: v.context,
	})
	v.must(err)
}

// putAway unpublishes and unstages the volume. It is idempotent.
func (v *volume) putAway() {
	v.Helper()
	node := csi.NewNodeClient(v.driver.Conn)
	_, err := node.NodeUnpublishVolume(v.ctx(), &csi.NodeUnpublishVolumeRequest{VolumeId: v.id, TargetPath: v.target})
	v.check(err)
	_, err = node.NodeUnstageVolume(v.ctx(), &csi.NodeUnstageVolumeRequest{VolumeId: v.id, StagingTargetPath: v.staging})
	v.check(err)
}

// expand grows the volume and then its filesystem, and checks the answers.
func (v *volume) expand(bytes int64) {
	v.Helper()
	size := &csi.CapacityRange{RequiredBytes: bytes}
	grown, err := csi.NewControllerClient(v.driver.Conn).ControllerExpandVolume(v.ctx(),
		&csi.ControllerExpandVolumeRequest{
			VolumeId: v.id, CapacityRange: size, VolumeCapability: v.capability,
		})
	v.must(err)
	if !grown.GetNodeExpansionRequired() || grown.GetCapacityBytes() < bytes {
		v.Fatalf("ControllerExpandVolume answers %v; want %d bytes and an expansion on the node", grown, bytes)
	}
	done, err := csi.NewNodeClient(v.driver.Conn).NodeExpandVolume(v.ctx(), &csi.NodeExpandVolumeRequest{
		VolumeId: v.id, VolumePath: v.target, StagingTargetPath: v.staging, CapacityRange: size,
		VolumeCapability: v.capability,
	})
	v.must(err)
	if done.GetCapacityBytes() < bytes {
		v.Fatalf("NodeExpandVolume answers %d bytes; want %d", done.GetCapacityBytes(), bytes)
	}
}

// size returns the size of the filesystem as a pod sees it, in bytes.
func (v *volume) size() int64 {
	v.Helper()
	var stat unix.Statfs_t
	v.must(unix.Statfs(v.target, &stat))
	return int64(stat.Blocks) * stat.Bsize
}

// image returns the path of the volume's image.
func (v *volume) image() string {
	v.Helper()
	source, err := v.driver.Instance.Node.Source(v.ctx(), backends.Attachment{Handle: v.id, Type: backends.Mount})
	v.must(err)
	device, ok := source.(backends.Device)
	if !ok || !device.Image {
		v.Fatalf("the volume's source is %#v, want an image", source)
	}
	return device.Path
}

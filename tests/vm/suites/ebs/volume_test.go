package ebs

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stowage-csi/stowage/tests/cloud/region"
)

// callLimit is the time limit of a call, as the kubelet and the sidecars set it.
const callLimit = 2 * time.Minute

// volume is a volume that the test uses as the kubelet and the sidecars do.
type volume struct {
	*instance
	id              string
	context         map[string]string // of the volume
	publish         map[string]string // of its attachment
	capability      *csi.VolumeCapability
	staging, target string
	controller      csi.ControllerClient
	node            csi.NodeClient
}

// newVolume creates a volume of one GiB until the test ends. An empty fsType makes it a raw one.
func (i *instance) newVolume(name, fsType string) *volume {
	i.Helper()
	dir := i.TempDir()
	v := &volume{
		instance: i, staging: filepath.Join(dir, "staging"), target: filepath.Join(dir, "pod", "target"),
		capability: capability(fsType),
		controller: csi.NewControllerClient(i.driver.Conn), node: csi.NewNodeClient(i.driver.Conn),
	}
	for _, path := range []string{v.staging, filepath.Dir(v.target)} {
		v.must(os.MkdirAll(path, 0o755))
	}
	info, err := v.node.NodeGetInfo(i.ctx(), &csi.NodeGetInfoRequest{})
	v.must(err)
	made, err := v.controller.CreateVolume(i.ctx(), &csi.CreateVolumeRequest{
		Name: name, CapacityRange: &csi.CapacityRange{RequiredBytes: gib},
		VolumeCapabilities:        []*csi.VolumeCapability{v.capability},
		AccessibilityRequirements: &csi.TopologyRequirement{Preferred: []*csi.Topology{info.GetAccessibleTopology()}},
	})
	v.must(err)
	v.id, v.context = made.GetVolume().GetVolumeId(), made.GetVolume().GetVolumeContext()
	i.Cleanup(v.end)
	return v
}

func capability(fsType string) *csi.VolumeCapability {
	c := &csi.VolumeCapability{
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER},
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{FsType: fsType}},
	}
	if fsType == "" {
		c.AccessType = &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}
	}
	return c
}

// end unstages and detaches the volume in whatever state it is, and deletes it.
func (v *volume) end() {
	v.putAway()
	v.detach()
	_, err := v.controller.DeleteVolume(v.ctx(), &csi.DeleteVolumeRequest{VolumeId: v.id})
	v.check(err)
}

func (v *volume) attachTo(node string) {
	v.Helper()
	answer, err := v.controller.ControllerPublishVolume(v.ctx(),
		&csi.ControllerPublishVolumeRequest{VolumeId: v.id, NodeId: node, VolumeCapability: v.capability,
			VolumeContext: v.context})
	v.must(err)
	v.publish = answer.GetPublishContext()
}

func (v *volume) attach() {
	v.Helper()
	v.attachTo(region.NodeA)
}

func (v *volume) detach() {
	v.Helper()
	_, err := v.controller.ControllerUnpublishVolume(v.ctx(), &csi.ControllerUnpublishVolumeRequest{VolumeId: v.id})
	v.check(err)
	if left := v.devices(v.id); len(left) > 0 {
		v.Errorf("after %s was detached it is still there: %v", v.id, left)
	}
}

func (v *volume) stage() error {
	ctx, cancel := context.WithTimeout(v.ctx(), callLimit)
	defer cancel()
	_, err := v.node.NodeStageVolume(ctx, &csi.NodeStageVolumeRequest{
		VolumeId: v.id, StagingTargetPath: v.staging, VolumeCapability: v.capability, VolumeContext: v.context,
		PublishContext: v.publish,
	})
	return err
}

func (v *volume) publishAt(target string) error {
	ctx, cancel := context.WithTimeout(v.ctx(), callLimit)
	defer cancel()
	_, err := v.node.NodePublishVolume(ctx, &csi.NodePublishVolumeRequest{
		VolumeId: v.id, StagingTargetPath: v.staging, TargetPath: target, VolumeCapability: v.capability,
		VolumeContext: v.context, PublishContext: v.publish,
	})
	return err
}

// show stages and publishes the volume.
func (v *volume) show() {
	v.Helper()
	v.must(v.stage())
	v.must(v.publishAt(v.target))
}

// putAway unpublishes and unstages the volume. It is idempotent.
func (v *volume) putAway() {
	v.Helper()
	v.unpublish()
	ctx, cancel := context.WithTimeout(v.ctx(), callLimit)
	defer cancel()
	_, err := v.node.NodeUnstageVolume(ctx, &csi.NodeUnstageVolumeRequest{VolumeId: v.id, StagingTargetPath: v.staging})
	v.check(err)
}

func (v *volume) unpublish() {
	v.Helper()
	ctx, cancel := context.WithTimeout(v.ctx(), callLimit)
	defer cancel()
	_, err := v.node.NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: v.id, TargetPath: v.target})
	v.check(err)
}

// refused fails the test unless a call was refused with the code and a message that contains the words.
func (v *volume) refused(err error, code codes.Code, words ...string) {
	v.Helper()
	if status.Code(err) != code {
		v.Fatalf("got %v, want %v", err, code)
	}
	v.Log(status.Convert(err).Message())
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			v.Errorf("the answer does not name %s: %v", word, err)
		}
	}
}

// raw reports whether pods get the device.
func (v *volume) raw() bool { return v.capability.GetBlock() != nil }

// record is the checksum of written data.
type record [sha256.Size]byte

const recordSize = 4 * mib

// offsets returns the positions of records on a raw volume: at both ends and in between.
func offsets() []int64 { return []int64{0, gib/2 + 4096, gib - recordSize} }

// write writes to the volume as a pod does, and syncs.
func (v *volume) write() record {
	v.Helper()
	text := make([]byte, recordSize)
	_, _ = rand.Read(text) // it never fails
	path, places := v.target, offsets()
	if !v.raw() {
		path, places = filepath.Join(v.target, "file"), []int64{0}
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	v.must(err)
	defer file.Close()
	for _, at := range places {
		_, err := file.WriteAt(text, at)
		v.must(err)
	}
	v.must(file.Sync())
	if !v.raw() {
		folder, err := os.Open(v.target)
		v.must(err)
		defer folder.Close()
		v.must(folder.Sync())
	}
	return sha256.Sum256(text)
}

// verify reads the data as a pod does, and compares it.
func (v *volume) verify(want record) {
	v.Helper()
	path, places := v.target, offsets()
	if !v.raw() {
		path, places = filepath.Join(v.target, "file"), []int64{0}
	}
	file, err := os.Open(path)
	v.must(err)
	defer file.Close()
	for _, at := range places {
		text := make([]byte, recordSize)
		_, err := file.ReadAt(text, at)
		v.must(err)
		if sha256.Sum256(text) != want {
			v.Errorf("%s: what is at %d is not what was written", path, at)
		}
	}
}

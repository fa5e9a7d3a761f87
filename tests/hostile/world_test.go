package hostile

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/stowage-csi/stowage/tests/inprocess"
	"github.com/stowage-csi/stowage/tests/localpools"
)

// world is a driver with a published volume and a snapshot.
type world struct {
	driver                    *inprocess.Driver
	controller                csi.ControllerClient
	node                      csi.NodeClient
	groups                    csi.GroupControllerClient
	capability                *csi.VolumeCapability
	volume, snapshot          string
	volumeContext             map[string]string
	staging, target, newStage string
}

func newWorld(t *testing.T, backend, root string) *world {
	t.Helper()
	options := inprocess.Options{Backend: backend, DataDir: filepath.Join(root, "data"), DelegateFSGroup: true}
	if backend == "local" {
		options.Config = localpools.YAML
	}
	driver := inprocess.Start(t, options)
	w := &world{
		driver: driver, controller: csi.NewControllerClient(driver.Conn), node: csi.NewNodeClient(driver.Conn),
		groups:  csi.NewGroupControllerClient(driver.Conn),
		staging: filepath.Join(root, "staging"), newStage: filepath.Join(root, "staging-2"),
		target: filepath.Join(root, "pod", "volume"),
		capability: &csi.VolumeCapability{
			AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER},
			AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
		},
	}
	for _, dir := range []string{w.staging, w.newStage, filepath.Dir(w.target)} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	w.fill(t, backend)
	return w
}

func (w *world) fill(t *testing.T, backend string) {
	t.Helper()
	create := w.create("precious")
	if backend == "local" {
		create.Parameters = map[string]string{"pool": "directory"}
	}
	made, err := w.controller.CreateVolume(t.Context(), create)
	if err != nil {
		t.Fatal(err)
	}
	w.volume, w.volumeContext = made.GetVolume().GetVolumeId(), made.GetVolume().GetVolumeContext()
	snapshot, err := w.controller.CreateSnapshot(t.Context(),
		&csi.CreateSnapshotRequest{Name: "snap", SourceVolumeId: w.volume})
	if err != nil {
		t.Fatal(err)
	}
	w.snapshot = snapshot.GetSnapshot().GetSnapshotId()
	if _, err := w.node.NodeStageVolume(t.Context(), w.stage()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.node.NodePublishVolume(t.Context(), w.publish()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.teardown(t) })
}

// teardown proves that the volume is unchanged: it can be unpublished, unstaged and deleted normally.
func (w *world) teardown(t *testing.T) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	_, err := w.node.NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: w.volume, TargetPath: w.target})
	if err == nil {
		_, err = w.node.NodeUnstageVolume(ctx, &csi.NodeUnstageVolumeRequest{VolumeId: w.volume,
			StagingTargetPath: w.staging})
	}
	if err == nil {
		_, err = w.controller.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: w.volume})
	}
	if err != nil {
		t.Errorf("the volume was harmed: %v", err)
	}
}

func (w *world) create(name string) *csi.CreateVolumeRequest {
	return &csi.CreateVolumeRequest{
		Name: name, VolumeCapabilities: []*csi.VolumeCapability{w.capability},
		CapacityRange: &csi.CapacityRange{RequiredBytes: 16 << 20},
	}
}

func (w *world) stage() *csi.NodeStageVolumeRequest {
	return &csi.NodeStageVolumeRequest{
		VolumeId: w.volume, StagingTargetPath: w.staging, VolumeCapability: w.capability, VolumeContext: w.volumeContext,
	}
}

func (w *world) publish() *csi.NodePublishVolumeRequest {
	return &csi.NodePublishVolumeRequest{
		VolumeId: w.volume, StagingTargetPath: w.staging, TargetPath: w.target, VolumeCapability: w.capability,
		VolumeContext: w.volumeContext,
	}
}

// requests returns valid requests of a type, as templates for hostile ones.
func (w *world) requests(name protoreflect.Name) []proto.Message {
	all := []proto.Message{
		w.create("new"), &csi.DeleteVolumeRequest{VolumeId: "none"},
		&csi.CreateVolumeRequest{Name: "clone", VolumeCapabilities: []*csi.VolumeCapability{w.capability},
			Parameters: map[string]string{"pool": "x"}, MutableParameters: map[string]string{"x": "y"}},
		&csi.ControllerPublishVolumeRequest{VolumeId: w.volume, NodeId: "node-1", VolumeCapability: w.capability},
		&csi.ControllerUnpublishVolumeRequest{VolumeId: w.volume, NodeId: "node-1"},
		&csi.ValidateVolumeCapabilitiesRequest{VolumeId: w.volume, VolumeCapabilities: []*csi.VolumeCapability{w.capability}},
		&csi.ListVolumesRequest{MaxEntries: 1}, &csi.GetCapacityRequest{},
		&csi.ControllerGetVolumeRequest{VolumeId: w.volume},
		&csi.ControllerExpandVolumeRequest{VolumeId: w.volume, CapacityRange: &csi.CapacityRange{RequiredBytes: 17 << 20}},
		&csi.ControllerModifyVolumeRequest{VolumeId: w.volume, MutableParameters: map[string]string{"x": "y"}},
		&csi.CreateSnapshotRequest{Name: "new", SourceVolumeId: w.volume}, &csi.DeleteSnapshotRequest{SnapshotId: "none"},
		&csi.ListSnapshotsRequest{MaxEntries: 1}, &csi.GetSnapshotRequest{SnapshotId: w.snapshot},
		&csi.ControllerGetVolumeHealthRequest{VolumeId: w.volume}, &csi.ControllerListVolumeHealthRequest{MaxEntries: 1},
		&csi.CreateVolumeGroupSnapshotRequest{Name: "new", SourceVolumeIds: []string{w.volume}},
		&csi.DeleteVolumeGroupSnapshotRequest{GroupSnapshotId: "none"},
		&csi.GetVolumeGroupSnapshotRequest{GroupSnapshotId: "none"},
		w.stage(), &csi.NodeUnstageVolumeRequest{VolumeId: "none", StagingTargetPath: w.newStage},
		w.publish(), &csi.NodeUnpublishVolumeRequest{VolumeId: "none", TargetPath: w.target + "-2"},
		&csi.NodeUnpublishVolumeRequest{VolumeId: w.volume, TargetPath: w.target + "-2"},
		&csi.NodeGetVolumeStatsRequest{VolumeId: w.volume, VolumePath: w.target},
		&csi.NodeExpandVolumeRequest{VolumeId: w.volume, VolumePath: w.target},
		&csi.NodeGetVolumeHealthRequest{VolumeId: w.volume, VolumePublishPath: w.target, StagingTargetPath: w.staging},
	}
	var list []proto.Message
	for _, request := range all {
		if request.ProtoReflect().Descriptor().Name() == name {
			list = append(list, request)
		}
	}
	return list
}

// undo reverts a hostile request that was granted.
func (w *world) undo(t *testing.T, request, response proto.Message) {
	t.Helper()
	var err error
	switch r := request.(type) {
	case *csi.CreateVolumeRequest:
		made := convert[csi.CreateVolumeResponse](t, response)
		_, err = w.controller.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: made.GetVolume().GetVolumeId()})
	case *csi.CreateSnapshotRequest:
		made := convert[csi.CreateSnapshotResponse](t, response)
		_, err = w.controller.DeleteSnapshot(t.Context(),
			&csi.DeleteSnapshotRequest{SnapshotId: made.GetSnapshot().GetSnapshotId()})
	case *csi.CreateVolumeGroupSnapshotRequest:
		made := convert[csi.CreateVolumeGroupSnapshotResponse](t, response)
		request := &csi.DeleteVolumeGroupSnapshotRequest{GroupSnapshotId: made.GetGroupSnapshot().GetGroupSnapshotId()}
		for _, member := range made.GetGroupSnapshot().GetSnapshots() {
			request.SnapshotIds = append(request.SnapshotIds, member.GetSnapshotId())
		}
		_, err = w.groups.DeleteVolumeGroupSnapshot(t.Context(), request)
	case *csi.NodePublishVolumeRequest:
		if r.GetTargetPath() != w.target {
			_, err = w.node.NodeUnpublishVolume(t.Context(),
				&csi.NodeUnpublishVolumeRequest{VolumeId: r.GetVolumeId(), TargetPath: r.GetTargetPath()})
		}
	}
	if err != nil {
		t.Errorf("undoing %T: %v", request, err)
	}
}

func convert[T any, P interface {
	*T
	proto.Message
}](t *testing.T, from proto.Message) P {
	t.Helper()
	data, err := proto.Marshal(from)
	if err != nil {
		t.Fatal(err)
	}
	to := P(new(T))
	if err := proto.Unmarshal(data, to); err != nil {
		t.Fatal(err)
	}
	return to
}

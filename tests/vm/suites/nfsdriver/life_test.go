package nfsdriver

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
)

// steps returns the calls of a volume's life, in their order.
func steps() []string {
	return []string{"create", "stage", "publish", "stats", "unpublish", "unstage", "delete"}
}

// life is one volume on its way through the steps.
type life struct {
	conn             *grpc.ClientConn
	name             string
	params           map[string]string
	staging, target  string
	id               string
	attributes       map[string]string
	controllerClient csi.ControllerClient
	node             csi.NodeClient
}

func newLife(t *testing.T, conn *grpc.ClientConn, name, server, share string) *life {
	t.Helper()
	dir := t.TempDir()
	l := &life{
		name: name, params: map[string]string{"server": server, "share": share},
		staging: filepath.Join(dir, "staging"), target: filepath.Join(dir, "target"),
	}
	l.connect(conn)
	if err := os.Mkdir(l.staging, 0o700); err != nil { // The kubelet creates it.
		t.Fatal(err)
	}
	return l
}

// connect continues the volume's life with another driver.
func (l *life) connect(conn *grpc.ClientConn) {
	l.conn, l.controllerClient, l.node = conn, csi.NewControllerClient(conn), csi.NewNodeClient(conn)
}

func capability() *csi.VolumeCapability {
	return &csi.VolumeCapability{
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER},
	}
}

// do makes the call of a step.
func (l *life) do(ctx context.Context, step string) (err error) {
	switch step {
	case "create":
		var made *csi.CreateVolumeResponse
		made, err = l.controllerClient.CreateVolume(ctx, &csi.CreateVolumeRequest{
			Name: l.name, CapacityRange: &csi.CapacityRange{RequiredBytes: 1 << 20},
			VolumeCapabilities: []*csi.VolumeCapability{capability()}, Parameters: l.params,
		})
		if err == nil {
			l.id, l.attributes = made.GetVolume().GetVolumeId(), made.GetVolume().GetVolumeContext()
		}
	case "stage":
		_, err = l.node.NodeStageVolume(ctx, &csi.NodeStageVolumeRequest{
			VolumeId: l.id, VolumeContext: l.attributes, StagingTargetPath: l.staging, VolumeCapability: capability(),
		})
	case "publish":
		_, err = l.node.NodePublishVolume(ctx, &csi.NodePublishVolumeRequest{
			VolumeId: l.id, VolumeContext: l.attributes, StagingTargetPath: l.staging, TargetPath: l.target,
			VolumeCapability: capability(),
		})
	case "stats":
		_, err = l.node.NodeGetVolumeStats(ctx, &csi.NodeGetVolumeStatsRequest{VolumeId: l.id, VolumePath: l.target})
	case "unpublish":
		_, err = l.node.NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: l.id, TargetPath: l.target})
	case "unstage":
		_, err = l.node.NodeUnstageVolume(ctx, &csi.NodeUnstageVolumeRequest{VolumeId: l.id, StagingTargetPath: l.staging})
	case "delete":
		_, err = l.controllerClient.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: l.id})
	}
	return err
}

// upTo makes the calls before a step.
func (l *life) upTo(ctx context.Context, step string) error {
	return l.patiently(ctx, steps()[:slices.Index(steps(), step)]...)
}

func (l *life) all(ctx context.Context, some []string) error {
	for _, step := range some {
		if err := l.do(ctx, step); err != nil {
			return err
		}
	}
	return nil
}

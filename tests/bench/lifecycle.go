package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
)

// rpcTimeout limits one RPC. It is far above the duration of any, and only ends a hang.
const rpcTimeout = 2 * time.Minute

// rpcNames returns the RPCs of a lifecycle in their order.
func rpcNames() [rpcs]string {
	return [rpcs]string{
		"CreateVolume", "ValidateVolumeCapabilities", "NodeStageVolume", "NodePublishVolume",
		"NodeGetVolumeStats", "NodeUnpublishVolume", "NodeUnstageVolume", "DeleteVolume",
	}
}

// timing holds the duration of each RPC of one lifecycle, in the order of rpcNames.
type timing [rpcs]time.Duration

func (t timing) total() time.Duration {
	var sum time.Duration
	for _, d := range t {
		sum += d
	}
	return sum
}

// client has the services of the driver that a lifecycle uses.
type client struct {
	controller csi.ControllerClient
	node       csi.NodeClient
}

func newClient(conn grpc.ClientConnInterface) client {
	return client{csi.NewControllerClient(conn), csi.NewNodeClient(conn)}
}

// volume is one volume on its way through a lifecycle.
type volume struct {
	client     client
	name       string
	pool       string
	size       int64
	capability *csi.VolumeCapability
	staging    string // the orchestrator's directory
	target     string // created by the driver; its parent is the orchestrator's

	made *csi.Volume
}

// newVolume describes a volume with paths in dir.
func newVolume(c client, opts options, pool, name, dir string) *volume {
	mount := &csi.VolumeCapability_MountVolume{}
	if pool == imagePool {
		mount.FsType = opts.fsType
	}
	return &volume{
		client: c, name: name, pool: pool, size: int64(opts.size),
		capability: &csi.VolumeCapability{
			AccessType: &csi.VolumeCapability_Mount{Mount: mount},
			AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
		},
		staging: filepath.Join(dir, name, "staging"),
		target:  filepath.Join(dir, name, "pod", "mount"),
	}
}

// prepare creates the directories that the orchestrator must provide.
func (v *volume) prepare() error {
	if err := os.MkdirAll(v.staging, 0o750); err != nil {
		return err
	}
	return os.MkdirAll(filepath.Dir(v.target), 0o750)
}

// live takes the volume through its lifecycle. The error names the RPC that failed.
func (v *volume) live(ctx context.Context) (t timing, err error) {
	steps := [rpcs]func(context.Context) error{
		v.create, v.validate, v.stage, v.publish, v.stats, v.unpublish, v.unstage, v.delete,
	}
	for i, step := range steps {
		begin := time.Now()
		if err := limited(ctx, step); err != nil {
			return t, fmt.Errorf("%s of volume %s failed: %w", rpcNames()[i], v.name, err)
		}
		t[i] = time.Since(begin)
	}
	return t, nil
}

func limited(ctx context.Context, step func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, rpcTimeout)
	defer cancel()
	return step(ctx)
}

func (v *volume) create(ctx context.Context) error {
	answer, err := v.client.controller.CreateVolume(ctx, &csi.CreateVolumeRequest{
		Name:               v.name,
		CapacityRange:      &csi.CapacityRange{RequiredBytes: v.size},
		VolumeCapabilities: []*csi.VolumeCapability{v.capability},
		Parameters:         map[string]string{"pool": v.pool},
	})
	v.made = answer.GetVolume()
	return err
}

func (v *volume) validate(ctx context.Context) error {
	answer, err := v.client.controller.ValidateVolumeCapabilities(ctx, &csi.ValidateVolumeCapabilitiesRequest{
		VolumeId:           v.made.GetVolumeId(),
		VolumeContext:      v.made.GetVolumeContext(),
		VolumeCapabilities: []*csi.VolumeCapability{v.capability},
	})
	if err == nil && answer.GetConfirmed() == nil {
		err = fmt.Errorf("the volume is not confirmed to be as it was made: %s", answer.GetMessage())
	}
	return err
}

func (v *volume) stage(ctx context.Context) error {
	_, err := v.client.node.NodeStageVolume(ctx, &csi.NodeStageVolumeRequest{
		VolumeId:          v.made.GetVolumeId(),
		VolumeContext:     v.made.GetVolumeContext(),
		StagingTargetPath: v.staging,
		VolumeCapability:  v.capability,
	})
	return err
}

func (v *volume) publish(ctx context.Context) error {
	_, err := v.client.node.NodePublishVolume(ctx, &csi.NodePublishVolumeRequest{
		VolumeId:          v.made.GetVolumeId(),
		VolumeContext:     v.made.GetVolumeContext(),
		StagingTargetPath: v.staging,
		TargetPath:        v.target,
		VolumeCapability:  v.capability,
	})
	return err
}

func (v *volume) stats(ctx context.Context) error {
	answer, err := v.client.node.NodeGetVolumeStats(ctx, &csi.NodeGetVolumeStatsRequest{
		VolumeId: v.made.GetVolumeId(), VolumePath: v.target, StagingTargetPath: v.staging,
	})
	if err == nil && len(answer.GetUsage()) == 0 {
		err = fmt.Errorf("there are no stats of the volume at %s", v.target)
	}
	return err
}

func (v *volume) unpublish(ctx context.Context) error {
	_, err := v.client.node.NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{
		VolumeId: v.made.GetVolumeId(), TargetPath: v.target,
	})
	return err
}

func (v *volume) unstage(ctx context.Context) error {
	_, err := v.client.node.NodeUnstageVolume(ctx, &csi.NodeUnstageVolumeRequest{
		VolumeId: v.made.GetVolumeId(), StagingTargetPath: v.staging,
	})
	return err
}

func (v *volume) delete(ctx context.Context) error {
	_, err := v.client.controller.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: v.made.GetVolumeId()})
	return err
}

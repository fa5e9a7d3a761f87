package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

// Claim describes a volume to provision, and its use.
type Claim struct {
	Name       string // a file name without slashes
	Bytes      int64
	Parameters map[string]string // the storage class's
	Block      bool              // a raw device, not a filesystem
	MountGroup string            // volume_mount_group; empty for none
	Snapshot   string            // the ID of the snapshot to restore; empty for an empty volume
}

// Volume is a provisioned volume. It is not safe for concurrent use.
type Volume struct {
	Claim   Claim
	ID      string
	Bytes   int64 // its capacity in the last answer
	Context map[string]string

	places places
}

// Snapshot is a snapshot that was taken.
type Snapshot struct {
	Name, ID string
	Source   string // the volume's ID
	Bytes    int64
}

// Staging returns the staging path.
func (v *Volume) Staging() string { return v.places.staging(v.Claim.Name) }

// Target returns the target path: a directory, or a device node for a raw volume.
func (v *Volume) Target() string { return v.places.target(v.Claim.Name) }

// Capability returns the claim's CSI capability.
func (c Claim) Capability() *csi.VolumeCapability {
	mode := &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER}
	if c.Block {
		return &csi.VolumeCapability{AccessMode: mode,
			AccessType: &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}}
	}
	mount := &csi.VolumeCapability_MountVolume{VolumeMountGroup: c.MountGroup}
	return &csi.VolumeCapability{AccessMode: mode, AccessType: &csi.VolumeCapability_Mount{Mount: mount}}
}

// Provision creates the volume of a claim.
func (c *Client) Provision(ctx context.Context, claim Claim) (*Volume, error) {
	request := &csi.CreateVolumeRequest{
		Name: claim.Name, CapacityRange: &csi.CapacityRange{RequiredBytes: claim.Bytes},
		VolumeCapabilities: []*csi.VolumeCapability{claim.Capability()}, Parameters: claim.Parameters,
	}
	if claim.Snapshot != "" {
		source := &csi.VolumeContentSource_SnapshotSource{SnapshotId: claim.Snapshot}
		request.VolumeContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Snapshot{Snapshot: source}}
	}
	response, err := c.CreateVolume(ctx, request)
	if err != nil {
		return nil, fmt.Errorf("CreateVolume %s: %w", claim.Name, err)
	}
	made := response.GetVolume()
	if made.GetCapacityBytes() < claim.Bytes {
		return nil, fmt.Errorf("CreateVolume %s: %d bytes were asked and %d given", claim.Name, claim.Bytes,
			made.GetCapacityBytes())
	}
	if got := made.GetContentSource().GetSnapshot().GetSnapshotId(); got != claim.Snapshot {
		return nil, fmt.Errorf("CreateVolume %s: snapshot %q was asked as the source and %q answered", claim.Name,
			claim.Snapshot, got)
	}
	return &Volume{
		Claim: claim, ID: made.GetVolumeId(), Bytes: made.GetCapacityBytes(), Context: made.GetVolumeContext(),
		places: c.places,
	}, nil
}

// Stage creates the staging directory and stages the volume.
func (c *Client) Stage(ctx context.Context, v *Volume) error {
	if err := makeDirs(v.Staging()); err != nil {
		return err
	}
	_, err := c.NodeStageVolume(ctx, &csi.NodeStageVolumeRequest{
		VolumeId: v.ID, StagingTargetPath: v.Staging(), VolumeCapability: v.Claim.Capability(), VolumeContext: v.Context,
	})
	return called("NodeStageVolume", v, err)
}

// Publish creates the target's parent and publishes the volume.
func (c *Client) Publish(ctx context.Context, v *Volume) error {
	if err := makeDirs(filepath.Dir(v.Target())); err != nil {
		return err
	}
	_, err := c.NodePublishVolume(ctx, &csi.NodePublishVolumeRequest{
		VolumeId: v.ID, StagingTargetPath: v.Staging(), TargetPath: v.Target(),
		VolumeCapability: v.Claim.Capability(), VolumeContext: v.Context,
	})
	return called("NodePublishVolume", v, err)
}

// Unpublish unpublishes the volume, checks that its target is gone, and removes the target's parent.
func (c *Client) Unpublish(ctx context.Context, v *Volume) error {
	_, err := c.NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: v.ID, TargetPath: v.Target()})
	if err != nil {
		return called("NodeUnpublishVolume", v, err)
	}
	if _, err := os.Lstat(v.Target()); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(fmt.Errorf("NodeUnpublishVolume %s left the target %s", v.ID, v.Target()), err)
	}
	return removeDir(filepath.Dir(v.Target()))
}

// Unstage unstages the volume and removes its staging directory, which must then be empty.
func (c *Client) Unstage(ctx context.Context, v *Volume) error {
	_, err := c.NodeUnstageVolume(ctx, &csi.NodeUnstageVolumeRequest{VolumeId: v.ID, StagingTargetPath: v.Staging()})
	if err != nil {
		return called("NodeUnstageVolume", v, err)
	}
	if err := removeDir(v.Staging()); err != nil {
		return fmt.Errorf("NodeUnstageVolume %s left something: %w", v.ID, err)
	}
	return nil
}

// Delete deletes the volume.
func (c *Client) Delete(ctx context.Context, v *Volume) error {
	_, err := c.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: v.ID})
	return called("DeleteVolume", v, err)
}

// Expand grows the volume, and its filesystem if the driver requires that and the volume is mounted.
func (c *Client) Expand(ctx context.Context, v *Volume, bytes int64, mounted bool) error {
	size := &csi.CapacityRange{RequiredBytes: bytes}
	response, err := c.ControllerExpandVolume(ctx, &csi.ControllerExpandVolumeRequest{
		VolumeId: v.ID, CapacityRange: size, VolumeCapability: v.Claim.Capability(),
	})
	if err != nil {
		return called("ControllerExpandVolume", v, err)
	}
	if response.GetCapacityBytes() < bytes {
		return fmt.Errorf("ControllerExpandVolume %s: %d bytes were asked and %d given", v.ID, bytes,
			response.GetCapacityBytes())
	}
	v.Bytes = response.GetCapacityBytes()
	if !response.GetNodeExpansionRequired() || !mounted {
		return nil
	}
	_, err = c.NodeExpandVolume(ctx, &csi.NodeExpandVolumeRequest{
		VolumeId: v.ID, VolumePath: v.Target(), StagingTargetPath: v.Staging(), CapacityRange: size,
		VolumeCapability: v.Claim.Capability(),
	})
	return called("NodeExpandVolume", v, err)
}

// Snapshot takes a snapshot of the volume. The parameters are the snapshot class's.
func (c *Client) Snapshot(ctx context.Context, v *Volume, name string,
	parameters map[string]string) (*Snapshot, error) {
	response, err := c.CreateSnapshot(ctx, &csi.CreateSnapshotRequest{SourceVolumeId: v.ID, Name: name,
		Parameters: parameters})
	if err != nil {
		return nil, called("CreateSnapshot", v, err)
	}
	made := response.GetSnapshot()
	if made.GetSourceVolumeId() != v.ID || !made.GetReadyToUse() {
		return nil, fmt.Errorf("CreateSnapshot %s: the answer is of volume %q, ready %t", v.ID, made.GetSourceVolumeId(),
			made.GetReadyToUse())
	}
	return &Snapshot{Name: name, ID: made.GetSnapshotId(), Source: v.ID, Bytes: made.GetSizeBytes()}, nil
}

// Forget deletes the snapshot.
func (c *Client) Forget(ctx context.Context, s *Snapshot) error {
	if _, err := c.DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: s.ID}); err != nil {
		return fmt.Errorf("DeleteSnapshot %s: %w", s.ID, err)
	}
	return nil
}

func called(method string, v *Volume, err error) error {
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, v.ID, err)
	}
	return nil
}

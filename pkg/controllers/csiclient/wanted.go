package csiclient

import (
	"context"
	"fmt"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/status"
)

// Wanted describes a volume in CSI's terms, for a caller that forwards a request.
type Wanted struct {
	Name                      string
	RequiredBytes, LimitBytes int64 // 0 for no limit
	Parameters, Mutable       map[string]string
	Block                     bool              // it will be used as a raw device
	Mounts                    []Mount           // how it will be mounted
	Modes                     []string          // access modes, for example SINGLE_NODE_WRITER; each applies to each type
	Segments                  map[string]string // the only allowed place
	FromSnapshot, FromVolume  string            // handle of the source; both empty for an empty volume
}

// Mount is one way to mount a volume.
type Mount struct {
	Filesystem string
	Options    []string
}

// Make creates the volume, or returns the volume that an earlier call created. Its errors are those of Create.
func (c *Client) Make(ctx context.Context, w Wanted) (Volume, error) {
	capabilities, err := w.capabilities()
	if err != nil {
		return Volume{}, err
	}
	response, err := c.controller.CreateVolume(ctx, &csi.CreateVolumeRequest{
		Name: w.Name, CapacityRange: capacityRange(w.RequiredBytes, w.LimitBytes), VolumeCapabilities: capabilities,
		Parameters: w.Parameters, MutableParameters: w.Mutable, AccessibilityRequirements: requirement(w.Segments),
		VolumeContentSource: w.source(),
	})
	if err != nil {
		return Volume{}, err
	}
	v := response.GetVolume()
	return Volume{Handle: v.GetVolumeId(), SizeBytes: v.GetCapacityBytes(), Context: v.GetVolumeContext()}, nil
}

// Place returns the segments of the node that the driver serves.
func (c *Client) Place(ctx context.Context) (map[string]string, error) {
	info, err := csi.NewNodeClient(c.connection).NodeGetInfo(ctx, &csi.NodeGetInfoRequest{})
	if err != nil {
		return nil, fmt.Errorf("ask the driver %s where it is: %s", c.driver, Message(err))
	}
	return info.GetAccessibleTopology().GetSegments(), nil
}

// source returns the volume's content source, or nil.
func (w Wanted) source() *csi.VolumeContentSource {
	switch {
	case w.FromSnapshot != "":
		return &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Snapshot{
			Snapshot: &csi.VolumeContentSource_SnapshotSource{SnapshotId: w.FromSnapshot}}}
	case w.FromVolume != "":
		return &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{
			Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: w.FromVolume}}}
	}
	return nil
}

// capacityRange returns nil for any size.
func capacityRange(required, limit int64) *csi.CapacityRange {
	if required == 0 && limit == 0 {
		return nil
	}
	return &csi.CapacityRange{RequiredBytes: required, LimitBytes: limit}
}

// capabilities returns each type in each mode.
func (w Wanted) capabilities() (all []*csi.VolumeCapability, err error) {
	for _, name := range w.Modes {
		number, ok := csi.VolumeCapability_AccessMode_Mode_value[name]
		if !ok {
			return nil, fmt.Errorf("the access mode %q is none of CSI's", name)
		}
		mode := &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_Mode(number)}
		if w.Block {
			all = append(all, &csi.VolumeCapability{AccessMode: mode,
				AccessType: &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}})
		}
		for _, m := range w.Mounts {
			mount := &csi.VolumeCapability_MountVolume{FsType: m.Filesystem, MountFlags: m.Options}
			all = append(all, &csi.VolumeCapability{AccessMode: mode,
				AccessType: &csi.VolumeCapability_Mount{Mount: mount}})
		}
	}
	return all, nil
}

// Expansion is the result of growing a volume.
type Expansion struct {
	SizeBytes     int64
	NodeExpansion bool // the node must grow the filesystem
}

// Expand grows a volume to a size between required and limit; 0 is no limit.
func (c *Client) Expand(ctx context.Context, handle string, required, limit int64) (Expansion, error) {
	response, err := c.controller.ControllerExpandVolume(ctx, &csi.ControllerExpandVolumeRequest{
		VolumeId: handle, CapacityRange: capacityRange(required, limit)})
	if err != nil {
		return Expansion{}, err
	}
	return Expansion{response.GetCapacityBytes(), response.GetNodeExpansionRequired()}, nil
}

// Modify sets mutable parameters of a volume, and leaves the others unchanged.
func (c *Client) Modify(ctx context.Context, handle string, mutable map[string]string) error {
	_, err := c.controller.ControllerModifyVolume(ctx, &csi.ControllerModifyVolumeRequest{
		VolumeId: handle, MutableParameters: mutable})
	return err
}

// Reason returns the name of an error's gRPC code, for example ResourceExhausted.
func Reason(err error) string { return status.Code(err).String() }

package csiclient

import (
	"context"
	"fmt"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/kubernetes-csi/csi-lib-utils/accessmodes"
	corev1 "k8s.io/api/core/v1"
)

// Request describes a volume. Repeating a request returns the same volume.
type Request struct {
	Name         string
	SizeBytes    int64 // at least
	AccessModes  []corev1.PersistentVolumeAccessMode
	VolumeMode   corev1.PersistentVolumeMode
	FSType       string
	MountOptions []string
	Parameters   map[string]string
	Mutable      map[string]string // of a VolumeAttributesClass
	Segments     map[string]string // the place from which the volume must be reachable; empty for any
}

// Volume is a driver's answer.
type Volume struct {
	Handle    string
	SizeBytes int64
	Context   map[string]string
	Places    []map[string]string // segments of the places from which the volume is reachable; empty for everywhere
}

// Create creates the volume that the request describes, or returns the volume that an earlier call created. IsFinal
// reports which of its errors imply that nothing was created.
func (c *Client) Create(ctx context.Context, r Request) (Volume, error) {
	request, err := c.encode(r)
	if err != nil {
		return Volume{}, err
	}
	response, err := c.controller.CreateVolume(ctx, request)
	if err != nil {
		return Volume{}, err
	}
	v := response.GetVolume()
	volume := Volume{Handle: v.GetVolumeId(), SizeBytes: v.GetCapacityBytes(), Context: v.GetVolumeContext()}
	if volume.SizeBytes == 0 { // CSI: the driver does not know.
		volume.SizeBytes = r.SizeBytes
	}
	for _, place := range v.GetAccessibleTopology() {
		volume.Places = append(volume.Places, place.GetSegments())
	}
	return volume, nil
}

func (c *Client) encode(r Request) (*csi.CreateVolumeRequest, error) {
	mode, err := accessmodes.ToCSIAccessMode(r.AccessModes, c.singleNodeMultiWriter)
	if err != nil {
		return nil, fmt.Errorf("the access modes %v: %w", r.AccessModes, err)
	}
	capability := &csi.VolumeCapability{AccessMode: &csi.VolumeCapability_AccessMode{Mode: mode}}
	if r.VolumeMode == corev1.PersistentVolumeBlock {
		capability.AccessType = &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}
	} else {
		mount := &csi.VolumeCapability_MountVolume{FsType: r.FSType, MountFlags: r.MountOptions}
		capability.AccessType = &csi.VolumeCapability_Mount{Mount: mount}
	}
	request := &csi.CreateVolumeRequest{
		Name:               r.Name,
		CapacityRange:      &csi.CapacityRange{RequiredBytes: r.SizeBytes},
		VolumeCapabilities: []*csi.VolumeCapability{capability},
		Parameters:         r.Parameters,
		MutableParameters:  r.Mutable,
	}
	request.AccessibilityRequirements = requirement(r.Segments)
	return request, nil
}

// requirement returns a requirement for one place, or nil for any.
func requirement(segments map[string]string) *csi.TopologyRequirement {
	if len(segments) == 0 {
		return nil
	}
	place := []*csi.Topology{{Segments: segments}}
	return &csi.TopologyRequirement{Requisite: place, Preferred: place}
}

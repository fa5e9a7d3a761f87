package driver

import (
	"strconv"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/classes"
	"github.com/stowage-csi/stowage/pkg/node"
	"github.com/stowage-csi/stowage/pkg/secret"
	"github.com/stowage-csi/stowage/pkg/volume"
)

func (d decoder) stageVolume(r *csi.NodeStageVolumeRequest) (node.StageRequest, error) {
	request := node.StageRequest{Volume: r.GetVolumeId(), MountOptions: r.GetVolumeCapability().GetMount().GetMountFlags()}
	if err := id("volume_id", r.GetVolumeId()); err != nil {
		return request, err
	}
	var err error
	if request.StagingPath, err = path("staging_target_path", r.GetStagingTargetPath()); err != nil {
		return request, err
	}
	if request.Use, err = use(r.GetVolumeCapability()); err != nil {
		return request, err
	}
	if request.MountGroup, err = mountGroup(r.GetVolumeCapability()); err != nil {
		return request, err
	}
	if request.Settings, request.Attributes, err = d.contexts(r.GetVolumeContext(), r.GetPublishContext()); err != nil {
		return request, err
	}
	request.TrustSamples, err = trustSamples(r.GetVolumeContext())
	return request, err
}

// trustSamples reports whether a volume may be formatted although not every byte of it was read: this driver created
// it, or the author of the PersistentVolume allows it.
func trustSamples(volumeContext map[string]string) (bool, error) {
	switch value := volumeContext[node.AllowFormat]; value {
	case "", "false":
		return volume.Provisioned(volumeContext), nil
	case "true":
		return true, nil
	default:
		return false, backends.Errorf(backends.Invalid, "the volume attribute %s is %q: it must be \"true\" or \"false\"",
			node.AllowFormat, secret.Option(value))
	}
}

func (d decoder) publishToTarget(r *csi.NodePublishVolumeRequest) (node.PublishRequest, error) {
	request := node.PublishRequest{
		Volume: r.GetVolumeId(), ReadOnly: r.GetReadonly(),
		MountOptions: r.GetVolumeCapability().GetMount().GetMountFlags(),
	}
	if err := id("volume_id", r.GetVolumeId()); err != nil {
		return request, err
	}
	var err error
	if request.TargetPath, err = path("target_path", r.GetTargetPath()); err != nil {
		return request, err
	}
	if request.Use, err = use(r.GetVolumeCapability()); err != nil {
		return request, err
	}
	if r.GetStagingTargetPath() == "" { // CSI has a code of its own for this, which comes after those for other errors.
		return request, backends.Errorf(backends.Unsupported,
			"staging_target_path is missing: only what NodeStageVolume has made ready can be published")
	}
	if request.StagingPath, err = path("staging_target_path", r.GetStagingTargetPath()); err != nil {
		return request, err
	}
	request.MountGroup, err = mountGroup(r.GetVolumeCapability())
	return request, err
}

func (d decoder) expandOnNode(r *csi.NodeExpandVolumeRequest) (node.ExpandRequest, error) {
	request := node.ExpandRequest{Volume: r.GetVolumeId()}
	if err := id("volume_id", r.GetVolumeId()); err != nil {
		return request, err
	}
	var err error
	if request.Path, err = placeOf(r.GetVolumeId(), r.GetVolumePath()); err != nil {
		return request, err
	}
	if _, err = optionalPath("staging_target_path", r.GetStagingTargetPath()); err != nil {
		return request, err
	}
	if c := r.GetVolumeCapability(); c != nil {
		if request.Type, _, err = capability(c); err != nil {
			return request, err
		}
	}
	request.Size, err = capacity(r.GetCapacityRange())
	return request, err
}

// volumeAt decodes a volume's ID and a path of the volume.
func volumeAt(volumeID, field, value string) (string, error) {
	if err := id("volume_id", volumeID); err != nil {
		return "", err
	}
	return path(field, value)
}

// placeOf decodes the path of a volume in a query. A path that no volume can have is not malformed: the volume is not
// there, for which CSI wants NOT_FOUND.
func placeOf(volumeID, value string) (string, error) {
	if err := id("volume_id", volumeID); err != nil {
		return "", err
	}
	if value == "" {
		return "", backends.Errorf(backends.Invalid, "volume_path is missing")
	}
	clean, err := path("volume_path", value)
	if err != nil {
		return "", backends.Errorf(backends.NotFound, "volume %q is not at %q: %w", volumeID, value, err)
	}
	return clean, nil
}

func use(c *csi.VolumeCapability) (node.Use, error) {
	if c == nil {
		return node.Use{}, backends.Errorf(backends.Invalid, "volume_capability is missing")
	}
	kind, mode, err := capability(c)
	return node.Use{Type: kind, Mode: mode, FSType: c.GetMount().GetFsType()}, err
}

// mountGroup checks VolumeCapability.MountVolume.volume_mount_group: a group's ID in decimal digits.
func mountGroup(c *csi.VolumeCapability) (string, error) {
	group := c.GetMount().GetVolumeMountGroup()
	if group == "" {
		return "", nil
	}
	gid, err := strconv.ParseUint(group, 10, 31)
	if err == nil && strconv.FormatUint(gid, 10) == group {
		return group, nil
	}
	return "", backends.Errorf(backends.Invalid, "volume_mount_group is %q: it must be a group ID in decimal digits",
		secret.Option(group))
}

// contexts decodes the controller's data for the node. The publish context overrides the volume context.
func (d decoder) contexts(volumeContext,
	publishContext map[string]string) (classes.Settings, map[string]string, error) {
	var settings classes.Settings
	own, attributes, err := volume.DecodeContext(volumeContext, d.settings)
	if err != nil {
		return settings, nil, err
	}
	if err := d.schemas.Decode(own, &settings); err != nil {
		return settings, nil, err
	}
	_, attached, err := volume.DecodeContext(publishContext, nil)
	for key, value := range attached {
		attributes[key] = value
	}
	return settings, attributes, err
}

package driver

import (
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/classes"
	"github.com/stowage-csi/stowage/pkg/params"
	"github.com/stowage-csi/stowage/pkg/volume"
)

// creation is a decoded CreateVolumeRequest.
type creation struct {
	spec     backends.Spec
	source   backends.ContentSource
	settings classes.Settings
}

// decoder turns CSI messages into typed values for one backend.
type decoder struct {
	definition backends.Definition
	features   backends.Features
	schemas    *params.Schemas
	settings   []string // the keys of classes.Settings
}

func newDecoder(definition backends.Definition, features backends.Features) decoder {
	d := decoder{definition: definition, features: features, schemas: &params.Schemas{}}
	for _, field := range params.Describe(&classes.Settings{}) {
		d.settings = append(d.settings, field.Key)
	}
	return d
}

func (d decoder) createVolume(r *csi.CreateVolumeRequest) (creation, error) {
	var c creation
	steps := []func() error{
		func() error { return name(r.GetName()) },
		func() (err error) { c.spec.Access, err = access(r.GetVolumeCapabilities()); return err },
		func() (err error) { c.spec.Capacity, err = capacity(r.GetCapacityRange()); return err },
		func() (err error) { c.spec.Mutable, err = d.mutable(r.GetMutableParameters()); return err },
		func() error { return d.createParameters(r, &c) },
		func() (err error) { c.source, err = contentSource(r.GetVolumeContentSource()); return err },
		func() (err error) {
			c.spec.Topology, err = topology(r.GetAccessibilityRequirements(), d.features)
			return err
		},
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return creation{}, err
		}
	}
	c.spec.Name = r.GetName()
	return c, nil
}

// createParameters decodes the StorageClass's parameters: the backend's own, the node's settings, and those that
// csi-provisioner adds.
func (d decoder) createParameters(r *csi.CreateVolumeRequest, c *creation) error {
	var metadata params.Metadata
	var mode params.Conversion
	own := d.definition.NewParameters()
	if err := d.schemas.Decode(r.GetParameters(), own, &c.settings, &mode, &metadata); err != nil {
		return err
	}
	var err error
	if c.spec.Access, err = volume.InClass(c.spec.Access, c.settings.FSType); err != nil {
		return err
	}
	if err := checkGeometry(r.GetVolumeCapabilities(), c.settings); err != nil {
		return err
	}
	c.spec.LeastDeviceBytes = leastDevice(r.GetVolumeCapabilities(), c.settings)
	types := promised{Types: slices.Sorted(slices.Values(texts(c.spec.Access.Types)))}
	if c.spec.Mutable != nil {
		types.Mutable = d.schemas.Fingerprint(c.spec.Mutable) // Its keys may be those of the class, too.
	}
	c.spec.Parameters, c.spec.AllowModeChange = own, mode.Allow
	c.spec.Fingerprint = d.schemas.Fingerprint(own, &c.settings, &types)
	c.spec.Settings = d.schemas.Encode(&c.settings)
	c.spec.Claim = backends.Claim{Namespace: metadata.PVCNamespace, Name: metadata.PVCName, Volume: metadata.PVName}
	return nil
}

// promised adds the access types and the mutable parameters to the fingerprint. A volume that was created as a raw
// device must not be handed out as a filesystem under the same name.
type promised struct {
	Types   []string `param:"accessTypes"`
	Mutable string   `param:"mutableParameters"`
}

func texts[T ~string](list []T) []string {
	var all []string
	for _, v := range list {
		all = append(all, string(v))
	}
	return all
}

// checkGeometry refuses early a filesystem that the node could not create.
func checkGeometry(capabilities []*csi.VolumeCapability, settings classes.Settings) error {
	for _, c := range capabilities {
		if mount := c.GetMount(); mount != nil {
			if err := settings.CheckGeometry(mount.GetFsType()); err != nil {
				return err
			}
		}
	}
	return nil
}

// leastDevice returns the size of the smallest device that holds each filesystem that the node may have to create.
func leastDevice(capabilities []*csi.VolumeCapability, settings classes.Settings) int64 {
	var least int64
	for _, c := range capabilities {
		if mount := c.GetMount(); mount != nil {
			least = max(least, settings.LeastDevice(mount.GetFsType()))
		}
	}
	return least
}

// mutable decodes a VolumeAttributesClass's parameters. It returns nil if there are none.
func (d decoder) mutable(values map[string]string) (any, error) {
	if len(values) == 0 {
		return nil, nil // Spec.Mutable is nil when nothing mutable was asked
	}
	if d.definition.NewMutable == nil {
		return nil, backends.Errorf(backends.Invalid, "this backend has no mutable parameters, and some were given")
	}
	// csi-resizer adds the names of claim and volume with --extra-modify-metadata.
	value := d.definition.NewMutable()
	return value, d.schemas.Decode(values, value, &params.Metadata{})
}

func contentSource(s *csi.VolumeContentSource) (backends.ContentSource, error) {
	switch {
	case s == nil:
		return backends.ContentSource{}, nil
	case s.GetSnapshot() != nil:
		return backends.ContentSource{Snapshot: s.GetSnapshot().GetSnapshotId()},
			id("the content source's snapshot_id", s.GetSnapshot().GetSnapshotId())
	case s.GetVolume() != nil:
		return backends.ContentSource{Volume: s.GetVolume().GetVolumeId()},
			id("the content source's volume_id", s.GetVolume().GetVolumeId())
	}
	return backends.ContentSource{}, backends.Errorf(backends.Invalid,
		"the volume content source names neither a snapshot nor a volume")
}

func (d decoder) publishVolume(r *csi.ControllerPublishVolumeRequest) (backends.AttachRequest, error) {
	request := backends.AttachRequest{Handle: r.GetVolumeId(), Node: r.GetNodeId()}
	if r.GetReadonly() {
		return request, backends.Errorf(backends.Invalid,
			"readonly is true, and no volume can be attached for reading only: the driver has no PUBLISH_READONLY capability")
	}
	if err := id("volume_id", r.GetVolumeId()); err != nil {
		return request, err
	}
	if err := nodeID("node_id", r.GetNodeId()); err != nil {
		return request, err
	}
	if r.GetVolumeCapability() == nil {
		return request, backends.Errorf(backends.Invalid, "volume_capability is missing")
	}
	want, err := access([]*csi.VolumeCapability{r.GetVolumeCapability()})
	if err == nil {
		request.Access, err = volume.InClass(want, r.GetVolumeContext()[classes.FSTypeKey])
	}
	return request, err
}

func (d decoder) expandVolume(r *csi.ControllerExpandVolumeRequest) (backends.CapacityRange, error) {
	if err := id("volume_id", r.GetVolumeId()); err != nil {
		return backends.CapacityRange{}, err
	}
	if r.GetCapacityRange() == nil {
		return backends.CapacityRange{}, backends.Errorf(backends.Invalid, "capacity_range is missing")
	}
	return capacity(r.GetCapacityRange())
}

// capacityQuery decodes the parameters exactly as the class has them. They include those that csi-provisioner removes
// before it requests a volume, such as the filesystem, which a volume request has only in its capability.
func (d decoder) capacityQuery(r *csi.GetCapacityRequest) (backends.CapacityQuery, error) {
	var query backends.CapacityQuery
	var settings classes.Settings
	var metadata params.Metadata
	own := d.definition.NewParameters()
	if err := d.schemas.Decode(r.GetParameters(), own, &settings, &params.Conversion{}, &metadata); err != nil {
		return query, err
	}
	query.Parameters = own
	query.Topology = r.GetAccessibleTopology().GetSegments()
	if len(r.GetVolumeCapabilities()) == 0 {
		return query, nil
	}
	want, err := access(r.GetVolumeCapabilities())
	if err == nil {
		query.Access, err = volume.InClass(want, settings.FSType)
	}
	if err != nil {
		return query, err
	}
	return query, checkGeometry(r.GetVolumeCapabilities(), settings)
}

func (d decoder) createSnapshot(r *csi.CreateSnapshotRequest) (backends.SnapshotSpec, error) {
	spec := backends.SnapshotSpec{Name: r.GetName(), Volume: r.GetSourceVolumeId()}
	if err := name(r.GetName()); err != nil {
		return spec, err
	}
	if err := id("source_volume_id", r.GetSourceVolumeId()); err != nil {
		return spec, err
	}
	requirement, err := topology(r.GetAccessibilityRequirements(), d.features)
	if err != nil {
		return spec, err
	}
	spec.Topology = requirement
	spec.Parameters, err = d.snapshotParameters(r.GetParameters())
	return spec, err
}

// snapshotParameters decodes a VolumeSnapshotClass's parameters.
func (d decoder) snapshotParameters(values map[string]string) (any, error) {
	var metadata params.SnapshotMetadata
	if d.definition.NewSnapshotParameters == nil {
		return nil, d.schemas.Decode(values, &metadata)
	}
	value := d.definition.NewSnapshotParameters()
	return value, d.schemas.Decode(values, value, &metadata)
}

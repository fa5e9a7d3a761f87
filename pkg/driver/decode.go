package driver

import (
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/safepath"
	"github.com/stowage-csi/stowage/pkg/secret"
)

// maxField is CSI's size limit of a string field in bytes (spec, "Size Limits").
const maxField = 128

// MaxNodeID is the different limit of a node's ID (spec, NodeGetInfoResponse).
const MaxNodeID = 256

// name checks the name that the orchestrator gave to a new thing.
func name(value string) error {
	switch {
	case value == "":
		return backends.Errorf(backends.Invalid, "the name is missing")
	case len(value) > maxField:
		return backends.Errorf(backends.Invalid, "the name has %d bytes: at most %d are allowed", len(value), maxField)
	case !utf8.ValidString(value):
		return backends.Errorf(backends.Invalid, "the name %q is not UTF-8", value)
	case strings.ContainsFunc(value, banned):
		return backends.Errorf(backends.Invalid, "the name %q holds a control character", value)
	}
	return nil
}

// banned reports whether CSI bans a character from names: it bans control characters other than common white space.
func banned(r rune) bool {
	return unicode.IsControl(r) && r != '\t' && r != '\n' && r != '\r'
}

// id checks that an ID is present. Whether a thing has that ID is for the backend to decide.
func id(field, value string) error { return sized(field, value, maxField) }

// nodeID checks that a node's ID is present.
func nodeID(field, value string) error { return sized(field, value, MaxNodeID) }

func sized(field, value string, most int) error {
	switch {
	case value == "":
		return backends.Errorf(backends.Invalid, "%s is missing", field)
	case len(value) > most:
		return backends.Errorf(backends.Invalid, "%s has %d bytes: at most %d are allowed", field, len(value), most)
	}
	return nil
}

// path checks a path that the orchestrator chose, and returns it cleaned.
func path(field, value string) (string, error) {
	if value == "" {
		return "", backends.Errorf(backends.Invalid, "%s is missing", field)
	}
	clean, err := safepath.Absolute(value)
	if err != nil {
		return "", backends.Errorf(backends.Invalid, "%s: %w", field, err)
	}
	return clean, nil
}

// optionalPath is path for a field that may be empty.
func optionalPath(field, value string) (string, error) {
	if value == "" {
		return "", nil
	}
	return path(field, value)
}

// capacity checks a range of sizes.
func capacity(r *csi.CapacityRange) (backends.CapacityRange, error) {
	required, limit := r.GetRequiredBytes(), r.GetLimitBytes()
	switch {
	case r != nil && required == 0 && limit == 0:
		return backends.CapacityRange{}, backends.Errorf(backends.Invalid,
			"the capacity range is without a size: set required_bytes, limit_bytes or both")
	case required < 0 || limit < 0:
		return backends.CapacityRange{}, backends.Errorf(backends.Invalid,
			"the capacity range holds a negative size: required_bytes %d, limit_bytes %d", required, limit)
	case limit != 0 && required > limit:
		return backends.CapacityRange{}, backends.Errorf(backends.Invalid,
			"the capacity range is empty: required_bytes %d is more than limit_bytes %d", required, limit)
	}
	return backends.CapacityRange{RequiredBytes: required, LimitBytes: limit}, nil
}

// accessMode translates CSI's enumeration; ok is false for a mode that this driver does not know.
func accessMode(mode csi.VolumeCapability_AccessMode_Mode) (backends.AccessMode, bool) {
	known := backends.AccessMode(mode.String())
	all := append(backends.SingleNodeModes(),
		backends.MultiNodeReaderOnly, backends.MultiNodeSingleWriter, backends.MultiNodeMultiWriter)
	return known, slices.Contains(all, known)
}

// capability checks one volume capability.
func capability(c *csi.VolumeCapability) (backends.AccessType, backends.AccessMode, error) {
	mode, ok := accessMode(c.GetAccessMode().GetMode())
	if !ok {
		return "", "", backends.Errorf(backends.Invalid, "the volume capability's access mode %s is missing or unknown",
			c.GetAccessMode().GetMode())
	}
	switch {
	case c.GetBlock() != nil:
		return backends.Block, mode, nil
	case c.GetMount() != nil:
		return backends.Mount, mode, nil
	}
	return "", "", backends.Errorf(backends.Invalid, "the volume capability has neither access type: set mount or block")
}

// access combines volume capabilities into one set of types, modes and mountings.
func access(capabilities []*csi.VolumeCapability) (backends.Access, error) {
	var all backends.Access
	if len(capabilities) == 0 {
		return all, backends.Errorf(backends.Invalid, "the volume capabilities are missing")
	}
	for _, c := range capabilities {
		kind, mode, err := capability(c)
		if err != nil {
			return all, err
		}
		if !slices.Contains(all.Types, kind) {
			all.Types = append(all.Types, kind)
		}
		if !slices.Contains(all.Modes, mode) {
			all.Modes = append(all.Modes, mode)
		}
		if mount := c.GetMount(); mount != nil {
			all.Mountings = append(all.Mountings, backends.Mounting{Filesystem: mount.GetFsType(),
				Options: mount.GetMountFlags()})
		}
	}
	return all, nil
}

// topology checks that a requirement names only keys that the backend understands.
func topology(r *csi.TopologyRequirement, f backends.Features) (backends.TopologyRequirement, error) {
	requirement := backends.TopologyRequirement{Requisite: places(r.GetRequisite()), Preferred: places(r.GetPreferred())}
	all := slices.Concat(requirement.Requisite, requirement.Preferred)
	if r != nil && len(all) == 0 {
		return requirement, backends.Errorf(backends.Invalid,
			"the accessibility requirements name no place: set requisite, preferred or both")
	}
	if slices.ContainsFunc(all, func(place backends.Topology) bool { return len(place) == 0 }) {
		return requirement, backends.Errorf(backends.Invalid,
			"the accessibility requirements hold a topology without segments: name a key and a value in each")
	}
	if f.Topologist == nil {
		return backends.TopologyRequirement{}, nil
	}
	keys := f.Topologist.TopologyKeys()
	for _, place := range all {
		for key := range place {
			if !slices.Contains(keys, key) {
				return requirement, backends.Errorf(backends.Invalid,
					"the topology key %q is not known: this driver understands %s", secret.Option(key),
					strings.Join(keys, ", "))
			}
		}
	}
	return requirement, nil
}

func places(list []*csi.Topology) []backends.Topology {
	var all []backends.Topology
	for _, t := range list {
		all = append(all, backends.Topology(maps.Clone(t.GetSegments())))
	}
	return all
}

package volume

import (
	"slices"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// sameVolume fails unless a volume matches the spec. Kinds: Exists, with the difference.
func sameVolume(found *backends.Volume, spec backends.Spec, source backends.ContentSource) error {
	conflict := func(format string, args ...any) error {
		cause := backends.Errorf(backends.Exists, format, args...)
		return &backends.Error{Kind: backends.Exists, Op: "create", Volume: spec.Name, Err: cause}
	}
	switch {
	case !spec.Capacity.Contains(found.CapacityBytes):
		return conflict("a volume of this name exists with %d bytes, not %s: use another name", found.CapacityBytes,
			spec.Capacity)
	case found.Source != source:
		return conflict("a volume of this name exists that was made from %s, not from %s: use another name",
			describeSource(found.Source), describeSource(source))
	// CreateVolume succeeds only for a volume that is "compatible with the specified [...] parameters and
	// mutable_parameters" (spec.md 1.13, CreateVolume; the row of ALREADY_EXISTS does not list the latter). The parameters
	// at creation count: ControllerModifyVolume does not change the fingerprint.
	case found.Fingerprint != "" && found.Fingerprint != spec.Fingerprint:
		return conflict("a volume of this name exists that was made with other parameters, mutable parameters or access " +
			"types: use another name")
	case !reachable(found.Topology, spec.Topology):
		return conflict("a volume of this name exists at %v, not at any of %v: use another name", found.Topology,
			spec.Topology.Requisite)
	}
	if err := found.Access.Check(spec.Access); err != nil {
		return conflict("a volume of this name exists, and: %w", err)
	}
	return nil
}

func describeSource(source backends.ContentSource) string {
	switch {
	case source.Snapshot != "":
		return "snapshot " + source.Snapshot
	case source.Volume != "":
		return "volume " + source.Volume
	default:
		return "nothing"
	}
}

func reachable(places []backends.Topology, requirement backends.TopologyRequirement) bool {
	return len(places) == 0 || slices.ContainsFunc(places, requirement.Allows)
}

// sameSnapshot fails unless a snapshot matches the spec. Kinds: Exists.
func sameSnapshot(found *backends.Snapshot, spec backends.SnapshotSpec) error {
	switch {
	case found.Volume != spec.Volume:
		return backends.Errorf(backends.Exists, "a snapshot named %q exists of volume %s, not of %s: use another name",
			spec.Name, found.Volume, spec.Volume)
	case !reachable(found.Topology, spec.Topology):
		return backends.Errorf(backends.Exists,
			"a snapshot named %q exists that is usable from %v, not from any of %v: use another name",
			spec.Name, found.Topology, spec.Topology.Requisite)
	}
	return nil
}

// sameGroup fails unless a group matches the spec. Kinds: Exists.
func sameGroup(found *backends.Group, spec backends.GroupSpec) error {
	have := make([]string, len(found.Snapshots))
	for i, snapshot := range found.Snapshots {
		have[i] = snapshot.Volume
	}
	want := slices.Clone(spec.Volumes)
	slices.Sort(have)
	slices.Sort(want)
	if slices.Equal(have, want) {
		return sameParameters(found, spec)
	}
	return backends.Errorf(backends.Exists, "a group snapshot named %q exists of volumes %v, not of %v: use another name",
		spec.Name, have, want)
}

// sameParameters fails unless a group was created with the spec's parameters. Kinds: Exists.
func sameParameters(found *backends.Group, spec backends.GroupSpec) error {
	if found.Fingerprint == "" || found.Fingerprint == spec.Fingerprint {
		return nil
	}
	return backends.Errorf(backends.Exists,
		"a group snapshot named %q exists that was made with other parameters: use another name", spec.Name)
}

// gone returns the failure for a name that was taken a moment ago and is free now.
func gone(what, name string) error {
	return backends.Errorf(backends.Busy, "the %s %q was deleted while it was being created: ask again", what, name)
}

// doubted turns a refusal for lack of rights into Unusable, unless a lookup has shown that the name is free. An earlier
// call may have created the item, and the orchestrator forgets a name after a final refusal.
func doubted(err, looked error) error {
	if !backends.Is(err, backends.Denied) || backends.Is(looked, backends.NotFound) {
		return err
	}
	return backends.Errorf(backends.Unusable, "%w", err)
}

package driver

import (
	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/stowage-csi/stowage/pkg/backends"
)

func (d decoder) createGroup(r *csi.CreateVolumeGroupSnapshotRequest) (backends.GroupSpec, error) {
	spec := backends.GroupSpec{Name: r.GetName(), Volumes: r.GetSourceVolumeIds()}
	if err := name(r.GetName()); err != nil {
		return spec, err
	}
	if len(spec.Volumes) == 0 {
		return spec, backends.Errorf(backends.Invalid, "source_volume_ids is empty: name the volumes to snapshot")
	}
	if n := len(spec.Volumes); n > backends.MostMembers {
		return spec, backends.Errorf(backends.Invalid, "source_volume_ids has %d volumes: name at most %d", n,
			backends.MostMembers)
	}
	if err := ids("source_volume_ids", "a source volume's ID", spec.Volumes); err != nil {
		return spec, err
	}
	var err error
	spec.Parameters, err = d.snapshotParameters(r.GetParameters())
	if err == nil {
		spec.Fingerprint = d.schemas.Fingerprint(spec.Parameters)
	}
	return spec, err
}

// existingGroup checks a request for an existing group and its snapshots. It does not check whether these are all of
// them, which only the backend knows. An earlier version may have made a group of more than MostMembers.
func existingGroup(group string, snapshots []string) error {
	if err := id("group_snapshot_id", group); err != nil {
		return err
	}
	return ids("snapshot_ids", "a snapshot's ID", snapshots)
}

// ids checks the IDs of a group's members; what names one of them in errors.
func ids(field, what string, all []string) error {
	seen := make(map[string]bool, len(all))
	for _, member := range all {
		if err := id(what, member); err != nil {
			return err
		}
		if seen[member] {
			return backends.Errorf(backends.Invalid, "%s has %q twice: name each once", field, member)
		}
		seen[member] = true
	}
	return nil
}

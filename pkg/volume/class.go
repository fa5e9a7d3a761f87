package volume

import (
	"cmp"
	"slices"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/classes"
	"github.com/stowage-csi/stowage/pkg/secret"
)

// InClass returns the access with the filesystem of the volume's class for each mounting that names none. The class may
// name none either. Kinds: Invalid for a mounting that names another filesystem than the class.
func InClass(access backends.Access, fsType string) (backends.Access, error) {
	access.Mountings = slices.Clone(access.Mountings)
	for i, m := range access.Mountings {
		if m.Filesystem != "" && fsType != "" && m.Filesystem != fsType {
			return backends.Access{}, backends.Errorf(backends.Invalid,
				"the volume capability asks for the filesystem %q and the class, or the volume attribute %s, for %q: name one",
				secret.Option(m.Filesystem), classes.FSTypeKey, secret.Option(fsType))
		}
		access.Mountings[i].Filesystem = cmp.Or(m.Filesystem, fsType)
	}
	return access, nil
}

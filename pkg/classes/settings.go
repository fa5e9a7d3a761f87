package classes

import (
	"cmp"

	"github.com/stowage-csi/stowage/pkg/mountoptions"
	"github.com/stowage-csi/stowage/pkg/params"
)

// Settings are the StorageClass parameters that the node obeys, whatever the backend. They travel to
// the node in the volume context.
type Settings struct {
	FSType string `param:"csi.storage.k8s.io/fstype" doc:"Filesystem of the volume, when the volume capability names none: ext4, which is the default, xfs or btrfs to make on a new device; nfs or nfs4 for an NFS share; none for a directory."`
	Geometry
	// FSGroupChangePolicy stands in for the pod's field of that name, which CSI does not tell a driver.
	FSGroupChangePolicy string `param:"fsGroupChangePolicy" enum:"Always|OnRootMismatch" default:"Always" doc:"With --delegate-fsgroup: apply the pod's fsGroup on each stage that did work, or only when the volume's root does not have it yet."`
	// FSTrimInterval is 0 for never.
	FSTrimInterval params.Duration `param:"fstrimInterval" min:"1h" max:"2160h" doc:"How often a mounted filesystem that is on a device of its own is trimmed (fstrim), so that thin storage gets back what was deleted: 24h, or 168h for a week; never without it. Raw block volumes and directories need none. An image with allocation full loses what was allocated beforehand."`
}

// LeastDevice is the size in bytes of the smallest device that can be staged as a filesystem of the type which the
// volume capability names, or where it names none, of the settings' type or the default. It is 0 for a type that is
// never made here.
func (s Settings) LeastDevice(named string) int64 { return Least(s.fsType(named)) }

// CheckGeometry refuses a layout that a filesystem of that type cannot have. Kinds: Invalid.
func (s Settings) CheckGeometry(named string) error { return s.Check(s.fsType(named)) }

func (s Settings) fsType(named string) string {
	return cmp.Or(named, s.FSType, mountoptions.Filesystems()[0])
}

// Least is the size in bytes of the smallest device on which a filesystem of the type is made, and 0 for a type that is
// never made. Below it mkfs refuses, or the filesystem has no journal.
func Least(fsType string) int64 {
	const mib = 1 << 20
	switch fsType {
	case "ext4":
		return 2 * mib
	case "xfs":
		return 300 * mib
	case "btrfs":
		return 109 * mib
	}
	return 0
}

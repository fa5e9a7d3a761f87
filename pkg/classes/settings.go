package classes

import (
	"cmp"

	"github.com/stowage-csi/stowage/pkg/mountoptions"
	"github.com/stowage-csi/stowage/pkg/params"
)

// FSTypeKey is the key of Settings.FSType, in a class and in a volume context.
const FSTypeKey = "csi.storage.k8s.io/fstype"

// Settings holds the StorageClass parameters that the node implements for all backends. The node gets them in the
// volume context.
type Settings struct {
	FSType string `param:"csi.storage.k8s.io/fstype" doc:"Filesystem of the volume, when the volume capability names none: ext4, which is the default, xfs or btrfs to make on a new device; nfs or nfs4 for an NFS share; none for a directory."`
	Geometry
	// FSGroupChangePolicy replaces the pod's field of that name, which CSI does not pass to a driver.
	FSGroupChangePolicy string `param:"fsGroupChangePolicy" enum:"Always|OnRootMismatch" default:"Always" doc:"With --delegate-fsgroup: apply the pod's fsGroup on each stage that did work, or only when the volume's root does not have it yet."`
	// FSTrimInterval is 0 for never.
	FSTrimInterval params.Duration `param:"fstrimInterval" min:"1h" max:"2160h" doc:"How often a mounted filesystem that is on a device of its own is trimmed (fstrim), so that thin storage gets back what was deleted: 24h, or 168h for a week; never without it. Raw block volumes and directories need none. An image with allocation full loses what was allocated beforehand."`
}

// LeastDevice returns the minimum size in bytes of a device that can be staged as a filesystem. The type is the one
// that the volume capability names, else that of the settings, else the default. It returns 0 for a type that is never
// created here.
func (s Settings) LeastDevice(named string) int64 { return Least(s.fsType(named)) }

// CheckGeometry fails if a filesystem of that type cannot have the layout. Kinds: Invalid.
func (s Settings) CheckGeometry(named string) error { return s.Check(s.fsType(named)) }

func (s Settings) fsType(named string) string {
	return cmp.Or(named, s.FSType, mountoptions.Filesystems()[0])
}

// Least returns the minimum size in bytes of a device on which a filesystem of the type is created, or 0 for a type
// that is never created. On a smaller device mkfs fails, or the filesystem has no journal.
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

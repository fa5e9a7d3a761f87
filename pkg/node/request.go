package node

import (
	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node/filesystem"
	"github.com/stowage-csi/stowage/pkg/params"
)

// Settings are the StorageClass parameters that the node obeys, whatever the backend. They travel to
// the node in the volume context.
type Settings struct {
	FSType string `param:"csi.storage.k8s.io/fstype" enum:"ext4|xfs|btrfs" doc:"Filesystem to make on a new volume, when the volume capability names none."`
	filesystem.Geometry
	// FSGroupChangePolicy stands in for the pod's field of that name, which CSI does not tell a driver.
	FSGroupChangePolicy string `param:"fsGroupChangePolicy" enum:"Always|OnRootMismatch" default:"Always" doc:"With --delegate-fsgroup: apply the pod's fsGroup on each stage that did work, or only when the volume's root does not have it yet."`
	// FSTrimInterval is 0 for never.
	FSTrimInterval params.Duration `param:"fstrimInterval" min:"1h" max:"2160h" doc:"How often a mounted filesystem that is on a device of its own is trimmed (fstrim), so that thin storage gets back what was deleted: 24h, or 168h for a week; never without it. Raw block volumes and directories need none. An image with allocation full loses what was allocated beforehand."`
}

// StageRequest asks for a volume to be made ready on this node (CSI NodeStageVolume).
type StageRequest struct {
	Volume       string // the volume's handle
	StagingPath  string // an existing directory
	Use          Use
	Attributes   map[string]string // backends.Attachment.Attributes
	Settings     Settings
	MountOptions []string
	MountGroup   string // a group ID in decimal digits; empty for none
	// TrustSamples lets a device be formatted that is so large that only known places and samples of it were read. Without
	// it every byte must have been read.
	TrustSamples bool
}

// AllowFormat is the volume attribute that stands for TrustSamples in a PersistentVolume made by hand; its value is true or false.
const AllowFormat = "stowage.dev/allowFormat"

// PublishRequest asks for a staged volume to appear at a path (CSI NodePublishVolume).
type PublishRequest struct {
	Volume       string
	StagingPath  string
	TargetPath   string // its parent exists
	Use          Use
	ReadOnly     bool
	MountOptions []string
	MountGroup   string // a group ID in decimal digits; empty for none
}

// Use is one way of using a volume, as a node sees it.
type Use struct {
	Type   backends.AccessType
	Mode   backends.AccessMode
	FSType string // what the capability names; empty for the Settings' or the default
}

// ExpandRequest asks for what is on a volume to fill it (CSI NodeExpandVolume).
type ExpandRequest struct {
	Volume string
	Path   string // where the volume is staged or published
	Size   backends.CapacityRange
}

// Stats is how full a published volume is. A raw block volume has a total of bytes only.
type Stats struct {
	Bytes  Usage
	Inodes Usage // all zero where the filesystem counts none
	Block  bool
}

// Usage counts bytes or inodes.
type Usage struct {
	Total, Used, Available int64
}

// Info describes this node (CSI NodeGetInfo).
type Info struct {
	NodeID     string
	MaxVolumes int64 // 0 for no known limit
	Topology   backends.Topology
}

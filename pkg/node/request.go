package node

import (
	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/classes"
)

// StageRequest asks for a volume to be made ready on this node (CSI NodeStageVolume).
type StageRequest struct {
	Volume       string // the volume's handle
	StagingPath  string // an existing directory
	Use          Use
	Attributes   map[string]string // backends.Attachment.Attributes
	Settings     classes.Settings
	MountOptions []string
	MountGroup   string // a group ID in decimal digits; empty for none
	// TrustSamples allows formatting a device that is so large that only known places and samples of it were read. Without
	// it every byte must have been read.
	TrustSamples bool
}

// AllowFormat is the volume attribute that stands for TrustSamples in a hand-written PersistentVolume. Its value is
// true or false.
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
	FSType string // from the volume capability; empty for that of Settings, or the default
}

// ExpandRequest asks to grow the contents of a volume to the volume's size (CSI NodeExpandVolume).
type ExpandRequest struct {
	Volume string
	Path   string              // where the volume is staged or published
	Type   backends.AccessType // how it is used; empty if the orchestrator does not say
	Size   backends.CapacityRange
}

// Stats is how full a published volume is. A raw block volume has only a total of bytes.
type Stats struct {
	Bytes  Usage
	Inodes Usage // all zero if the filesystem does not count them
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

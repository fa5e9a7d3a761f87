package backends

import (
	"fmt"
	"slices"
	"strings"
)

// Spec describes the requested volume. All fields are decoded and validated.
type Spec struct {
	// Name is the orchestrator's name, unique for each volume: any text of up to 128 bytes (CSI, "Size Limits"), not valid
	// as a file name.
	Name     string
	Capacity CapacityRange
	// LeastDeviceBytes is the size of the smallest device on which the node can create the requested filesystem; 0 if it
	// creates none. A volume that reaches the node as a Device is at least this large, or OutOfRange when Capacity has a
	// lower limit. A Directory or an Export ignores it.
	LeastDeviceBytes int64
	// Parameters is what Definition.NewParameters returned, filled in.
	Parameters any
	// Mutable is what Definition.NewMutable returned, filled in; nil if no mutable parameter is requested.
	Mutable any
	// Access lists all ways in which the volume will be used.
	Access Access
	// AllowModeChange lets a volume that will be used as a filesystem have the contents of a raw device: see CheckMode.
	AllowModeChange bool
	// Topology says where the volume must be reachable from.
	Topology TopologyRequirement
	// Claim names the Kubernetes objects of the volume, if they are known: for tags and templates.
	Claim Claim
	// Fingerprint represents everything that makes two Specs of one name different, except capacity, topology and source.
	// The backend keeps it with the volume and returns it in Volume.
	Fingerprint string
	// Settings are class parameters for the node, by name. The backend keeps them with the volume and returns them in
	// Volume, and does not interpret them.
	Settings map[string]string
}

// Raw reports whether the volume will only be used as a raw device. A backend keeps that with the volume and with its
// snapshots. Such a volume is never mounted as a filesystem, because its users may have written anything to it.
func (s Spec) Raw() bool { return slices.Equal(s.Access.Types, []AccessType{Block}) }

// CheckMode refuses to use the contents of a raw device as a filesystem. A crafted filesystem may reach the kernel only
// if a user who may write a class allows it. Kinds: Invalid.
func (s Spec) CheckMode(sourceIsRaw bool) error {
	if !sourceIsRaw || s.AllowModeChange || !slices.Contains(s.Access.Types, Mount) {
		return nil
	}
	return Errorf(Invalid,
		"the source was made as a raw device (volumeMode: Block), and this volume is to be a filesystem: what is there is "+
			"whatever its users wrote; "+
			"ask for volumeMode: Block, or, if you trust them, use a StorageClass with the parameter allowVolumeModeChange: "+
			"\"true\"")
}

// Claim names the Kubernetes objects of a volume (csi-provisioner's --extra-create-metadata).
type Claim struct {
	Namespace, Name string // of the PersistentVolumeClaim
	Volume          string // of the PersistentVolume
}

// Volume is a volume that exists.
type Volume struct {
	// Handle is the backend's own name of the volume, at most 128 bytes. It never changes.
	Handle        string
	Name          string
	CapacityBytes int64
	Fingerprint   string // Spec.Fingerprint; empty if unknown, as for volumes that were created by others
	Source        ContentSource
	Access        Access // all the ways to use it
	Topology      []Topology
	// PublishedNodes are the nodes that the volume is attached to; only an Attacher sets it.
	PublishedNodes []string
	// Attributes reach the node in Attachment.Attributes and are shown to users in the PersistentVolume.
	Attributes map[string]string
	Settings   map[string]string // Spec.Settings; the volume context has them as it has the Attributes
}

// ContentSource is the source of a volume's contents; the zero value means that it was created empty.
type ContentSource struct {
	Snapshot string // a snapshot's handle
	Volume   string // a volume's handle
}

// CapacityRange is a range of sizes in bytes; 0 means no bound.
type CapacityRange struct {
	RequiredBytes int64 // at least
	LimitBytes    int64 // at most
}

// Contains reports whether a size in bytes lies within the range.
func (r CapacityRange) Contains(size int64) bool {
	return size >= r.RequiredBytes && (r.LimitBytes == 0 || size <= r.LimitBytes)
}

// String renders the range for an error message.
func (r CapacityRange) String() string {
	if r.LimitBytes == 0 {
		return fmt.Sprintf("at least %d bytes", r.RequiredBytes)
	}
	return fmt.Sprintf("%d to %d bytes", r.RequiredBytes, r.LimitBytes)
}

// Round returns the smallest size in the range that is at least least and a multiple of step; without a required size
// it starts from preferred. Kinds: OutOfRange when there is none.
func (r CapacityRange) Round(preferred, least, step int64) (int64, error) {
	size := r.RequiredBytes
	if size == 0 {
		size = preferred
		if r.LimitBytes != 0 {
			size = min(size, r.LimitBytes-r.LimitBytes%step)
		}
	}
	size = max(size, least)
	if rest := size % step; rest != 0 {
		size += step - rest
	}
	if size < 0 || !r.Contains(size) {
		return 0, Errorf(OutOfRange, "no volume size fits %s: sizes are multiples of %d bytes, from %d bytes", r, step, least)
	}
	return size, nil
}

// Expansion is the outcome of Expander.Expand.
type Expansion struct {
	CapacityBytes int64
	// NodeExpansion reports whether the node must grow the device or the filesystem, too.
	NodeExpansion bool
}

// AccessType is the form in which a workload gets a volume.
type AccessType string

// The access types of CSI's VolumeCapability.
const (
	Mount AccessType = "mount"
	Block AccessType = "block"
)

// AccessMode says from how many nodes a volume is used at the same time, and how.
type AccessMode string

// The access modes of CSI's VolumeCapability.AccessMode.
const (
	SingleNodeWriter       AccessMode = "SINGLE_NODE_WRITER"
	SingleNodeReaderOnly   AccessMode = "SINGLE_NODE_READER_ONLY"
	SingleNodeSingleWriter AccessMode = "SINGLE_NODE_SINGLE_WRITER"
	SingleNodeMultiWriter  AccessMode = "SINGLE_NODE_MULTI_WRITER"
	MultiNodeReaderOnly    AccessMode = "MULTI_NODE_READER_ONLY"
	MultiNodeSingleWriter  AccessMode = "MULTI_NODE_SINGLE_WRITER"
	MultiNodeMultiWriter   AccessMode = "MULTI_NODE_MULTI_WRITER"
)

// SingleNodeModes are the modes in which a volume is used on one node at a time.
func SingleNodeModes() []AccessMode {
	return []AccessMode{SingleNodeWriter, SingleNodeReaderOnly, SingleNodeSingleWriter, SingleNodeMultiWriter}
}

// Access is a set of ways to use a volume: each type in each mode.
type Access struct {
	Types []AccessType
	Modes []AccessMode
	// Mountings are the requested ways to mount it, in an Access that is requested.
	Mountings []Mounting
	// Mountable checks these, in an Access that a volume has. If it is nil, no Mounting may name a filesystem or an
	// option.
	Mountable Mountable
}

// Mounting is one way to mount a volume.
type Mounting struct {
	Filesystem string   // such as ext4; empty for any
	Options    []string // mount options, one per element
}

// Mountable checks how a volume can be mounted. Package mountoptions has the values for a Device and a Directory.
// Values are comparable.
type Mountable interface {
	// Check refuses mountings that are impossible. Kinds: Invalid, saying what is not and what is.
	Check(filesystem string, options []string) error
}

// OfRaw returns the access to a volume that was created as a raw device, even if a allows more. If raw is false, it
// returns a.
func (a Access) OfRaw(raw bool) Access {
	if raw {
		a.Types = []AccessType{Block}
	}
	return a
}

// Check checks that a includes all of want. Kinds: Invalid, saying what is not and what is.
func (a Access) Check(want Access) error {
	for _, t := range want.Types {
		if !slices.Contains(a.Types, t) {
			return Errorf(Invalid, "access type %q is not supported: use %s", t, join(a.Types))
		}
	}
	for _, m := range want.Modes {
		if !slices.Contains(a.Modes, m) {
			return Errorf(Invalid, "access mode %s is not supported: use %s", m, join(a.Modes))
		}
	}
	for _, m := range want.Mountings {
		if err := a.checkMounting(m); err != nil {
			return err
		}
	}
	return nil
}

// CheckStaged refuses to stage the volume for a use that it does not have; an empty type is always accepted. Unlike
// with Check, the request is well-formed, but exceeds what the volume can do. Kinds: Unsupported.
func (a Access) CheckStaged(t AccessType) error {
	if t == "" || slices.Contains(a.Types, t) {
		return nil
	}
	return Errorf(Unsupported, "the volume cannot be used with the access type %q: use %s", t, join(a.Types))
}

func (a Access) checkMounting(m Mounting) error {
	switch {
	case a.Mountable != nil:
		return a.Mountable.Check(m.Filesystem, m.Options)
	case m.Filesystem != "" || len(m.Options) > 0:
		return Errorf(Invalid,
			"this volume can have neither a filesystem nor mount options, and the request names one of them: name none")
	}
	return nil
}

func join[T ~string](list []T) string {
	texts := make([]string, len(list))
	for i, v := range list {
		texts[i] = string(v)
	}
	return strings.Join(texts, " or ")
}

// Page requests a part of an enumeration.
type Page struct {
	Limit int    // the maximum number of entries; 0 means all
	Token string // what the previous call returned; empty at the start
}

// AttachRequest says which volume to attach to which node.
type AttachRequest struct {
	Handle string
	Node   string // the node's ID as NodeGetInfo gave it
	Access Access
}

// Attachment is what a node knows about a volume.
type Attachment struct {
	Handle string
	// Type says whether the volume is requested as a filesystem or as a raw device; empty if it is no longer known how the
	// volume was staged.
	Type AccessType
	// Attributes are Volume.Attributes, overridden by those that Attacher.Attach returned.
	Attributes map[string]string
	// MountOptions are the options that will be used besides the Source's, one per element. A backend that allows only
	// some refuses the others with Invalid.
	MountOptions []string
}

package ledger

import (
	"slices"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// Record is what is known about one volume on this node.
type Record struct {
	Volume    string        `json:"volume"`
	Staged    *Staging      `json:"staged,omitempty"`
	Published []Publication `json:"published,omitempty"`
}

// Staging is where and how a volume is staged, or was about to be.
type Staging struct {
	Path     string              `json:"path"`
	Type     backends.AccessType `json:"type"`
	Mode     backends.AccessMode `json:"mode"`
	ReadOnly bool                `json:"readOnly,omitempty"`
	// Pending is set while something is left to do before or after the mount. The volume may then be mounted or attached
	// fully, partly or not at all.
	Pending bool `json:"pending,omitempty"`
	// Group is the group that the files belong to, in decimal digits; empty when none was asked for.
	Group string `json:"group,omitempty"`
	// TrimInterval is how often the filesystem is trimmed, in nanoseconds; 0 for never.
	TrimInterval time.Duration `json:"trimInterval,omitempty"`
	// Labels are the SELinux labels of the mount, as mount options; empty for none.
	Labels string `json:"labels,omitempty"`
	Source Source `json:"source"`
	// Root is the root of what is mounted; all zero while unknown.
	Root Root `json:"root"`
}

// Kind is the form of backends.Source that a volume has.
type Kind string

// The kinds of sources.
const (
	Device    Kind = "device"
	Directory Kind = "directory"
	Export    Kind = "export"
)

// Source is what a volume was staged from.
type Source struct {
	Kind   Kind   `json:"kind"`
	Path   string `json:"path"`             // the device node, image file or directory; the remote share of an export
	Image  bool   `json:"image,omitempty"`  // Path is an image file
	FSType string `json:"fsType,omitempty"` // the filesystem that is mounted
	// DevicePath, Major and Minor identify the block device in use: Path itself, or the loop device of an image. Empty and
	// zero while unknown.
	DevicePath string `json:"devicePath,omitempty"`
	Major      uint32 `json:"major,omitempty"`
	Minor      uint32 `json:"minor,omitempty"`
	// Sequence distinguishes the device from all others that have had or will have its number (device.Sequence); 0 while
	// unknown.
	Sequence uint64 `json:"sequence,omitempty"`
}

// Root identifies the root of a mounted filesystem or directory, or the bound device node.
type Root struct {
	Dev uint64 `json:"dev,omitempty"`
	Ino uint64 `json:"ino,omitempty"`
}

// Publication is where and how a volume is published, or was about to be.
type Publication struct {
	Target   string              `json:"target"`
	Mode     backends.AccessMode `json:"mode"`
	ReadOnly bool                `json:"readOnly,omitempty"`
	// Adopted says that the volume was found to show there after its record was lost. It may be another volume's
	// publication of the same export.
	Adopted bool `json:"adopted,omitempty"`
}

// Publication returns the publication at a target.
func (r Record) Publication(target string) (Publication, bool) {
	for _, p := range r.Published {
		if p.Target == target {
			return p, true
		}
	}
	return Publication{}, false
}

// WithPublication returns a record in which the publication is the only one at its target.
func (r Record) WithPublication(p Publication) Record {
	r = r.WithoutPublication(p.Target)
	r.Published = append(r.Published, p)
	return r
}

// WithoutPublication returns a record in which nothing is published at the target.
func (r Record) WithoutPublication(target string) Record {
	r = r.clone()
	r.Published = slices.DeleteFunc(r.Published, func(p Publication) bool { return p.Target == target })
	return r
}

// WithoutAdopted returns a record without adopted publications.
func (r Record) WithoutAdopted() Record {
	r = r.clone()
	r.Published = slices.DeleteFunc(r.Published, func(p Publication) bool { return p.Adopted })
	return r
}

// WithStaging returns a record with the staging; nil for none.
func (r Record) WithStaging(staged *Staging) Record {
	r = r.clone()
	r.Staged = staged
	return r
}

// Empty reports whether the record claims nothing.
func (r Record) Empty() bool { return r.Staged == nil && len(r.Published) == 0 }

// Paths returns the paths that the record claims for the volume. An adopted publication claims none.
func (r Record) Paths() []string {
	var paths []string
	if r.Staged != nil {
		paths = append(paths, r.Staged.Path)
	}
	for _, p := range r.Published {
		if !p.Adopted {
			paths = append(paths, p.Target)
		}
	}
	return paths
}

// clone copies the record, so that callers do not share its contents.
func (r Record) clone() Record {
	r.Published = slices.Clone(r.Published)
	if r.Staged != nil {
		staged := *r.Staged
		r.Staged = &staged
	}
	return r
}

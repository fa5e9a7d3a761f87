package local

import (
	"cmp"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// The values of the parameters allocation and onDelete.
const (
	sparse = "sparse"
	full   = "full"

	deleteData = "delete"
	retainData = "retain"
)

// The values of inUse and sourceInUse: whether to copy a directory while pods write to it.
const (
	refuseInUse = "refuse"
	copyInUse   = "copy"
)

// defaultPool is the pool of a class that names no pool.
const defaultPool = "image"

// Parameters are the parameters of a StorageClass.
type Parameters struct {
	Pool         string `param:"pool" default:"image" doc:"Pool of the node's configuration that the volume is taken from."`
	Allocation   string `param:"allocation" enum:"sparse|full" default:"sparse" doc:"Whether an image takes its space as it is written, or all of it at once. Pools of type image only."`
	OnDelete     string `param:"onDelete" enum:"delete|retain" default:"delete" doc:"What becomes of a deleted volume: it is removed, or moved to the pool's folder retained, where an operator finds it."`
	ReadAheadKiB *int   `param:"readAheadKiB" min:"0" max:"1048576" doc:"Read-ahead of the volume's device in KiB; 0 for the kernel's default. Pools of type image only."`
	SourceInUse  string `param:"sourceInUse" enum:"refuse|copy" default:"refuse" doc:"What becomes of the clone of a directory that is in use: it is refused, or made of a copy that is not of one instant. Clones of images are always of one instant."`
}

// Mutable are the parameters of a VolumeAttributesClass.
type Mutable struct {
	OnDelete     *string `param:"onDelete" enum:"delete|retain" doc:"What becomes of a deleted volume: it is removed, or moved to the pool's folder retained, where an operator finds it."`
	ReadAheadKiB *int    `param:"readAheadKiB" min:"0" max:"1048576" doc:"Read-ahead of the volume's device in KiB, from the next time it is staged; 0 for the kernel's default. Pools of type image only."`
}

// SnapshotParameters are the parameters of a VolumeSnapshotClass or VolumeGroupSnapshotClass.
type SnapshotParameters struct {
	InUse string `param:"inUse" enum:"refuse|copy" default:"refuse" doc:"What becomes of the snapshot of a directory that is in use: it is refused, or made of a copy that is not of one instant. Snapshots of images are always of one instant."`
}

// parametersOf fills in the defaults. Kinds: Invalid for a value of another type, which only a mistake in the program
// can bring.
func parametersOf(value any) (Parameters, error) {
	p, err := backends.Given[Parameters](value)
	if err != nil {
		return p, err
	}
	p.Pool = cmp.Or(p.Pool, defaultPool)
	p.Allocation = cmp.Or(p.Allocation, sparse)
	p.OnDelete = cmp.Or(p.OnDelete, deleteData)
	p.SourceInUse = cmp.Or(p.SourceInUse, refuseInUse)
	return p, nil
}

// applyTo sets the given parameters in a record, which must be checked afterwards.
func (m Mutable) applyTo(r *volumeRecord) {
	if m.OnDelete != nil {
		r.OnDelete = *m.OnDelete
	}
	if m.ReadAheadKiB != nil {
		r.ReadAheadKiB = *m.ReadAheadKiB
	}
}

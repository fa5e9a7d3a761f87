package local

import (
	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/mountoptions"
)

// poolType says what a pool's volumes are.
type poolType string

const (
	directory poolType = "directory"
	image     poolType = "image"
)

// dataName is what a volume's or snapshot's data is called in its folder.
func (k poolType) dataName() string {
	if k == image {
		return "image"
	}
	return "data"
}

// access is all the ways in which a pool's volumes can be used.
func (k poolType) access() backends.Access {
	access := backends.Access{Types: []backends.AccessType{backends.Mount}, Modes: backends.SingleNodeModes(),
		Mountable: mountoptions.Directory{}}
	if k == image {
		access.Types, access.Mountable = append(access.Types, backends.Block), mountoptions.Device{}
	}
	return access
}

package memory

import "github.com/stowage-csi/stowage/pkg/backends"

// Parameters are the StorageClass parameters.
type Parameters struct {
	Tier string `param:"tier" enum:"hot|cold" default:"hot" doc:"Label that the volume carries as an attribute. Both tiers are the same storage."`
}

// Mutable are the VolumeAttributesClass parameters. A nil field is left as it is.
type Mutable struct {
	ReadAheadKiB *int `param:"readAheadKiB" min:"0" max:"65536" doc:"Read-ahead of the volume's block device in KiB from its next staging on; 0 for the kernel's default."`
}

func parametersOf(value any) (*Parameters, error) {
	if p, ok := value.(*Parameters); ok && p != nil {
		return p, nil
	}
	return nil, backends.Errorf(backends.Invalid, "the parameters are a %T: give what NewParameters returns", value)
}

// mutableOf accepts nil too, for nothing to be set.
func mutableOf(value any) (*Mutable, error) {
	if value == nil {
		return &Mutable{}, nil
	}
	if m, ok := value.(*Mutable); ok && m != nil {
		return m, nil
	}
	return nil, backends.Errorf(backends.Invalid, "the mutable parameters are a %T: give what NewMutable returns", value)
}

func (m *Mutable) apply(v *volume) {
	if m.ReadAheadKiB != nil {
		v.readAheadKiB = *m.ReadAheadKiB
	}
}

package memory

// Parameters are the StorageClass parameters.
type Parameters struct {
	Tier string `param:"tier" enum:"hot|cold" default:"hot" doc:"Label that the volume carries as an attribute. Both tiers are the same storage."`
}

// Mutable are the VolumeAttributesClass parameters. A nil field is left as it is.
type Mutable struct {
	ReadAheadKiB *int `param:"readAheadKiB" min:"0" max:"65536" doc:"Read-ahead of the volume's block device in KiB from its next staging on; 0 for the kernel's default."`
}

func (m *Mutable) apply(v *volume) {
	if m.ReadAheadKiB != nil {
		v.readAheadKiB = *m.ReadAheadKiB
	}
}

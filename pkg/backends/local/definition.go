package local

import "github.com/stowage-csi/stowage/pkg/backends"

// Definition is the local backend's entry in the registry.
func Definition() backends.Definition {
	return backends.Definition{
		Name:                  "local",
		Summary:               "directories and image files on this node's own filesystems",
		Inseparable:           true,
		NewParameters:         func() any { return new(Parameters) },
		NewMutable:            func() any { return new(Mutable) },
		NewSnapshotParameters: func() any { return new(SnapshotParameters) },
		NewConfig:             func() any { return new(Config) },
		Open:                  open,
	}
}

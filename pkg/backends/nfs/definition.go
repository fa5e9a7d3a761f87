package nfs

import (
	"context"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/export"
)

// Definition returns the NFS backend's entry in the registry.
func Definition() backends.Definition { return DefinitionOver(export.Kernel{}) }

// DefinitionOver returns the backend over another way to reach exports. It is for tests on kernels without NFS.
func DefinitionOver(mounter export.Mounter) backends.Definition {
	return backends.Definition{
		Name:                  "nfs",
		Summary:               "directories of what NFS servers export",
		NewParameters:         func() any { return new(Parameters) },
		NewMutable:            func() any { return new(Mutable) },
		NewSnapshotParameters: func() any { return new(SnapshotParameters) },
		NewConfig:             func() any { return new(Config) },
		Open: func(ctx context.Context, options backends.Options) (*backends.Instance, error) {
			return open(ctx, options, mounter, paceOf)
		},
	}
}

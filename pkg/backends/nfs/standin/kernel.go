package standin

import (
	"context"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/export"
)

// OverKernel reaches the directories by NFS: a server of this machine exports them, or a directory above them, by their
// paths here.
type OverKernel struct{ Servers }

// Open mounts the directory that stands for the export from this machine's server.
func (k OverKernel) Open(ctx context.Context, address export.Address) (*export.Root, error) {
	served, err := k.served(address)
	if err != nil {
		return nil, err
	}
	return export.Kernel{}.Open(ctx, served)
}

// Source returns the directory, to be mounted from this machine's server.
func (k OverKernel) Source(ctx context.Context, address export.Address, dir string) (backends.Source, error) {
	served, err := k.served(address)
	if err != nil {
		return nil, err
	}
	return export.Kernel{}.Source(ctx, served, dir)
}

func (k OverKernel) served(address export.Address) (export.Address, error) {
	path, err := k.Path(address, "")
	address.Server, address.Path = "127.0.0.1", path
	return address, err
}

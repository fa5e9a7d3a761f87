package all

import (
	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/ebs"
	"github.com/stowage-csi/stowage/pkg/backends/local"
	"github.com/stowage-csi/stowage/pkg/backends/memory"
	"github.com/stowage-csi/stowage/pkg/backends/nfs"
)

// Registry returns every backend, in the order in which they are shown.
func Registry() backends.Registry {
	return backends.Registry{
		local.Definition(),
		memory.Definition(),
		nfs.Definition(),
		ebs.Definition(),
	}
}

package ebs

import (
	"slices"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/mountoptions"
)

// accessOf returns how a volume can be used: on one node at a time or, with Multi-Attach, on several. A volume with
// Multi-Attach never belongs to one node alone: EC2 attaches it to any node, even by a late request. It is a raw device
// only, because no filesystem here supports two kernels.
func accessOf(multi bool) backends.Access {
	if multi {
		return backends.Access{Types: []backends.AccessType{backends.Block}, Modes: sharedModes()}
	}
	return backends.Access{Types: []backends.AccessType{backends.Mount, backends.Block},
		Modes: backends.SingleNodeModes(), Mountable: mountoptions.Device{}}
}

func sharedModes() []backends.AccessMode {
	return []backends.AccessMode{backends.MultiNodeReaderOnly, backends.MultiNodeSingleWriter,
		backends.MultiNodeMultiWriter}
}

// shared reports whether any of the modes is for several nodes.
func shared(modes []backends.AccessMode) bool {
	return slices.ContainsFunc(sharedModes(), func(m backends.AccessMode) bool { return slices.Contains(modes, m) })
}

// checkAccess refuses an access that the volume does not support. Kinds: Invalid.
func checkAccess(have, want backends.Access) error {
	for _, mode := range want.Modes {
		if shared(have.Modes) && slices.Contains(backends.SingleNodeModes(), mode) {
			return backends.Errorf(backends.Invalid,
				"access mode %s is for one node alone, and a volume with Multi-Attach cannot be kept for one: ask for "+
					"ReadWriteMany or ReadOnlyMany and nothing beside it, or for another volume", mode)
		}
	}
	return have.Check(want)
}

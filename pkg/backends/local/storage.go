package local

import (
	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/mountoptions"
)

// poolType names a storage in the configuration and in records.
type poolType string

const (
	directory poolType = "directory"
	image     poolType = "image"
)

// The names of the data in the folder of a volume or snapshot.
const (
	directoryData = "data"
	imageData     = "image"
)

// isKnown reports whether the type is known. If not, only the accounts of its storage may be used.
func (t poolType) isKnown() bool { return t.storage().content != nil }

// storage describes the data of a pool's volumes. Handles, records, drafts, promises and trash are the same for all
// storages. All differences are here, and no other code asks which storage a pool has. The data of all are files in the
// pool's filesystem, on which their removal and the room in a pool rely.
type storage struct {
	name poolType
	data string // the name of the data in the folder of a volume or snapshot

	smallest, step int64 // the minimum size of a volume, and the step of its sizes

	// device says that a node gets a device: with a filesystem that the node creates and grows, or raw.
	device bool
	// instant says that the copy of a volume in use shows one instant. Nothing else uses or copies the volume meanwhile.
	instant bool
	// bounded says that a volume cannot exceed its size. Otherwise a quota bounds it, if the pool has quotas.
	bounded bool
	// recordsGrowth says that a crash can leave the data larger than the record says, so growth is recorded first.
	recordsGrowth bool
	// preallocates says that a volume can have all of its space from the beginning.
	preallocates bool
	// promisesSnapshots says that a snapshot has its size promised. Otherwise it has all that it needs once it is created:
	// see needs.
	promisesSnapshots bool

	content
	growth
	accounts
}

// storage returns the storage of this name. Items of an unknown type, which a newer version may have created, are
// counted like images and not touched.
func (t poolType) storage() *storage {
	switch t {
	case directory:
		return &storage{name: t, data: directoryData, smallest: 1, step: directoryStep,
			content: directories{}, growth: directories{}, accounts: directories{}}
	case image:
		return &storage{name: t, data: imageData, smallest: leastImage, step: imageStep,
			device: true, instant: true, bounded: true, recordsGrowth: true, preallocates: true, promisesSnapshots: true,
			content: images{}, growth: images{}, accounts: images{}}
	}
	return &storage{name: t, promisesSnapshots: true, accounts: images{}}
}

// access returns all the ways to use a pool's volumes.
func (s *storage) access() backends.Access {
	access := backends.Access{Types: []backends.AccessType{backends.Mount}, Modes: backends.SingleNodeModes(),
		Mountable: mountoptions.Directory{}}
	if s.device {
		access.Types, access.Mountable = append(access.Types, backends.Block), mountoptions.Device{}
	}
	return access
}

// least is the minimum size of a volume: the contents of its source, and for a device also the filesystem on it.
func (s *storage) least(leastDevice, contents int64) int64 {
	if s.device {
		return max(contents, leastDevice)
	}
	return contents
}

// size picks the size of a volume that takes at least the given number of bytes, for its contents or its filesystem.
// Without a required size, it starts from the preferred one. Kinds: OutOfRange.
func (s *storage) size(wanted backends.CapacityRange, preferred, least int64) (int64, error) {
	if wanted.LimitBytes != 0 && wanted.LimitBytes < least {
		return 0, backends.Errorf(backends.OutOfRange,
			"the volume takes at least %d bytes, for its contents or its filesystem, which is more than the limit of %d: "+
				"raise the limit", least, wanted.LimitBytes)
	}
	return wanted.Round(preferred, max(least, s.smallest), s.step)
}

// cost is how many bytes a snapshot of the given size takes from the ledger.
func (s *storage) cost(size int64) int64 {
	if s.promisesSnapshots {
		return size
	}
	return 0
}

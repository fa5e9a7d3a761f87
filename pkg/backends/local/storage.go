package local

import (
	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/mountoptions"
)

// poolType names a storage, in the configuration and in records.
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

// isKnown reports whether there is such a storage: if not, nothing but its accounts may be asked for.
func (t poolType) isKnown() bool { return t.storage().content != nil }

// storage is what the volumes of a pool are made of. Handles, records, drafts, promises and trash are the same for all.
// What differs is here, and nothing else asks which one a pool has. The data of all of them are files in the pool's
// filesystem, which is what their removal and the room in a pool count on.
type storage struct {
	name poolType
	data string // what a volume's or snapshot's data is called in its folder

	smallest, step int64 // the least size of a volume, of whose multiples the sizes are

	// device says that a node gets a device: one with a filesystem that is made and grown there, or a raw one.
	device bool
	// instant says that the copy of a volume in use shows one instant: nobody else uses or copies it meanwhile.
	instant bool
	// bounded says that nothing can make a volume larger than it is; else a quota bounds it, where there are any.
	bounded bool
	// recordsGrowth says that a crash can leave the data larger than the record says: growing is recorded first.
	recordsGrowth bool
	// preallocates says that a volume can have all of its space from the beginning.
	preallocates bool
	// promisesSnapshots says that a snapshot has its size promised. Else it has all that it needs once it is made: see
	// needs.
	promisesSnapshots bool

	content
	growth
	accounts
}

// storage is the one that is so named. What a newer version may have made, of a type that is not known, is counted as
// images are, and not touched.
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

// access is all the ways in which a pool's volumes can be used.
func (s *storage) access() backends.Access {
	access := backends.Access{Types: []backends.AccessType{backends.Mount}, Modes: backends.SingleNodeModes(),
		Mountable: mountoptions.Directory{}}
	if s.device {
		access.Types, access.Mountable = append(access.Types, backends.Block), mountoptions.Device{}
	}
	return access
}

// least is what a volume must hold: the contents of its source, and on a device the filesystem that is made there.
func (s *storage) least(leastDevice, contents int64) int64 {
	if s.device {
		return max(contents, leastDevice)
	}
	return contents
}

// size picks the size of a volume whose contents take at least so many bytes. Kinds: OutOfRange.
func (s *storage) size(wanted backends.CapacityRange, least int64) (int64, error) {
	if wanted.LimitBytes != 0 && wanted.LimitBytes < least {
		return 0, backends.Errorf(backends.OutOfRange,
			"the contents take %d bytes, which is more than the limit of %d: raise the limit",
			least, wanted.LimitBytes)
	}
	wanted.RequiredBytes = max(wanted.RequiredBytes, least)
	return wanted.Round(defaultSize, s.smallest, s.step)
}

// cost is what a snapshot of so many bytes takes from the ledger.
func (s *storage) cost(size int64) int64 {
	if s.promisesSnapshots {
		return size
	}
	return 0
}

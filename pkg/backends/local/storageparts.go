package local

import (
	"context"
	"iter"
	"os"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// content creates the data of volumes and snapshots, and describes the data for a node.
type content interface {
	// fill creates the data of a new volume, empty or with the contents of its origin, durably.
	fill(ctx context.Context, by copier, path string, record *volumeRecord, o *origin) error
	// capture creates the data of snapshots, durably. If the storage can show an instant, all of them show the same one.
	capture(ctx context.Context, by copier, copies []dataCopy) error
	// source returns what a node needs to use the data, which has the given info. Kinds: Unavailable when some is lost.
	source(path string, info os.FileInfo, record *volumeRecord) (backends.Source, error)
	// look finds problems of data that should have the given size.
	look(path string, info os.FileInfo, size int64) []backends.HealthIssue
}

// growth changes the size of a volume.
type growth interface {
	// extend gives a volume the size that the record says, durably. If it fails, the size is between old and new.
	extend(ctx context.Context, v *volume, record *volumeRecord) error
	// shrink undoes a failed extend. The length is that of the data before it, in bytes.
	shrink(v *volume, length int64) error
}

// accounts count the bytes that items take from their pool and the bytes that they already hold.
type accounts interface {
	// needs is how much room a copy of the data needs while it is made, if it is to have size bytes. The copy may share
	// its blocks with the data or not.
	needs(ctx context.Context, path string, size int64, shared bool) (int64, error)
	// holds is how many of its promised bytes a thing holds. Blocks that copies share do not count for a copy.
	holds(t thing) holding
	// measures returns the function for values that only a look at all of the data yields; nil if there are none.
	measures(t thing) func(ctx context.Context, path string) (int64, error)
	// heldBelow is how many bytes the data in the given folders of volumes, snapshots or groups holds.
	heldBelow(dirs iter.Seq[string]) int64
	// owes is how many bytes the data in such a folder may still take. It is for folders without an item on a shelf.
	// Shared blocks of a copy count as its own. The promise to the folder is read from its record, and only on demand.
	owes(dir string, promised func(dir string) int64) int64
}

// copier copies data. It knows what else is in use, and which filesystems must not be frozen.
type copier interface {
	// copyTree copies a directory, durably.
	copyTree(ctx context.Context, to, from string) error
	// copyImages makes copies that all show the same instant. Kinds: InUse when the present use of an image rules that
	// out; Unavailable when an image has lost data.
	copyImages(ctx context.Context, copies []dataCopy) error
}

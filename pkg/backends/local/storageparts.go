package local

import (
	"context"
	"iter"
	"os"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// content is how the data of volumes and snapshots comes to be, and what it is for a node.
type content interface {
	// fill makes the data of a new volume, empty or with the contents of its origin, durably.
	fill(ctx context.Context, by copier, path string, record *volumeRecord, o *origin) error
	// capture makes the data of snapshots, durably. Where the storage can show an instant, several show the same one.
	capture(ctx context.Context, by copier, copies []dataCopy) error
	// source is what a node gets, of data about which the kernel says so much. Kinds: Unavailable when some is lost.
	source(path string, info os.FileInfo, record *volumeRecord) (backends.Source, error)
	// look finds what is wrong with data that should have the size.
	look(path string, info os.FileInfo, size int64) []backends.HealthIssue
}

// growth is how a volume gets another size.
type growth interface {
	// extend gives a volume the size that the record says, durably. Should it fail, the size is between old and new.
	extend(ctx context.Context, v *volume, record *volumeRecord) error
	// shrink takes back what a failed extend has done. The record is that of before.
	shrink(v *volume, before *volumeRecord) error
}

// accounts tell what things take from their pool, and what they have of it already.
type accounts interface {
	// needs is how much room a copy of the data needs while it is made, if it is to have so many bytes. It may have its
	// blocks in common with the data or not.
	needs(ctx context.Context, path string, size int64, shared bool) (int64, error)
	// holds is what a thing has of those bytes that it was promised. What copies have in common is not a copy's.
	holds(t thing) holding
	// measures is how to find out what only a look at all of the data tells; nil where that tells nothing.
	measures(t thing) func(ctx context.Context, path string) (int64, error)
	// heldBelow is what the data holds that is in the folders of volumes, snapshots or groups.
	heldBelow(dirs iter.Seq[string]) int64
	// owes is how many bytes may still be taken by what is in such a folder and on no shelf. Blocks that a copy has in
	// common count as its own. What the folder was promised is read in its record, and only when it is asked for.
	owes(dir string, promised func(dir string) int64) int64
}

// copier copies data. It knows what else is in use, and what must not be brought to rest.
type copier interface {
	// copyTree copies a directory, durably.
	copyTree(ctx context.Context, to, from string) error
	// copyImages makes copies that all show one instant. Kinds: InUse when the present use of an image rules that out;
	// Unavailable when an image has lost data.
	copyImages(ctx context.Context, copies []dataCopy) error
}

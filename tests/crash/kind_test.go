package crash

import "github.com/stowage-csi/stowage/tests/orchestrator"

const mib = 1 << 20

// kind is a kind of volume.
type kind struct {
	name       string
	parameters map[string]string
	bytes      int64
	block      bool
	enforced   bool // the size limits the filesystem or the device
	growsWhile bool // it can grow while it is mounted
	// snapshotWhile are the snapshot's parameters while the volume is mounted; nil if no snapshot is possible then: the
	// driver cannot know when the writers of a raw device are idle.
	snapshotWhile map[string]string
}

// kinds returns the kinds that a worker uses in turn.
func kinds() []kind {
	image := func(fstype string) map[string]string {
		return map[string]string{"pool": "image", "csi.storage.k8s.io/fstype": fstype}
	}
	return []kind{
		{
			name: "ext4", parameters: image("ext4"), bytes: 64 * mib, enforced: true,
			growsWhile: orchestrator.GrowsExt4Online(), snapshotWhile: map[string]string{},
		},
		{
			name: "directory", parameters: map[string]string{"pool": "directory"}, bytes: 64 * mib,
			growsWhile: true, snapshotWhile: map[string]string{"inUse": "copy"},
		},
		{
			name: "xfs", parameters: image("xfs"), bytes: 320 * mib, enforced: true,
			growsWhile: true, snapshotWhile: map[string]string{},
		},
		{
			name: "block", parameters: map[string]string{"pool": "image"}, bytes: 16 * mib, block: true, enforced: true,
			growsWhile: true,
		},
	}
}

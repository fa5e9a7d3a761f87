package crash

import "github.com/stowage-csi/stowage/tests/orchestrator"

const mib = 1 << 20

// kind is one way to have a volume.
type kind struct {
	name       string
	parameters map[string]string
	bytes      int64
	block      bool
	enforced   bool // the size is the filesystem's or the device's, and not a label
	growsWhile bool // it can grow while it is mounted
	// snapshotWhile are the snapshot's parameters while the volume is mounted; nil when none can be taken then:
	// of a raw device nobody knows when its writers are at rest.
	snapshotWhile map[string]string
}

// kinds are those that a worker has in turn.
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

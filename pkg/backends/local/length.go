package local

import (
	"context"
	"os"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// lookedUp is the outcome of lstat(2).
type lookedUp struct {
	info os.FileInfo
	err  error
}

// length is how many bytes of the volume's data its node may use. A loop device is as large as its image, and the node
// grows the filesystem to that size. The image is larger than its record says after an expansion that was cut short, or
// after an administrator enlarged it. The caller holds the volume. Kinds: Unavailable when the image cannot be reached.
func (v *volume) length(ctx context.Context) (int64, error) {
	size := v.record.Load().size()
	if !v.pool.storage.device {
		return size, nil
	}
	found, err := look(ctx, v.pool.ledger.disk.disks.waiting, v.pool.path, func() lookedUp {
		info, err := os.Lstat(v.data())
		return lookedUp{info, err}
	})
	if err != nil {
		return 0, err
	}
	if found.err != nil {
		return 0, backends.Errorf(backends.Unavailable, "its data cannot be reached: %w", v.pool.explain(found.err))
	}
	return max(size, found.info.Size()), nil
}

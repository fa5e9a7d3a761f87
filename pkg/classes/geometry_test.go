package classes

import (
	"strings"
	"testing"

	"github.com/stowage-csi/stowage/pkg/failure"
	"github.com/stowage-csi/stowage/pkg/mountoptions"
)

func TestGeometryThatCannotBe(t *testing.T) {
	for _, c := range []struct {
		fsType string
		g      Geometry
		key    string // expected in the error
	}{
		{"ext4", Geometry{BlockSize: 3000}, "blockSize is 3000"},
		{"ext4", Geometry{InodeSize: 384}, "inodeSize is 384"},
		{"ext4", Geometry{BlockSize: 1024, InodeSize: 2048}, "inodeSize is 2048"},
		{"ext4", Geometry{BytesPerInode: 4096, Inodes: 100}, "numberOfInodes"},
		{"ext4", Geometry{BlockSize: 4096, BytesPerInode: 1024}, "bytesPerInode is 1024"},
		{"ext4", Geometry{ClusterSize: 65536}, "ext4BigAlloc"},
		{"ext4", Geometry{BigAlloc: true, BlockSize: 4096, ClusterSize: 4096}, "ext4ClusterSize is 4096"},
		{"xfs", Geometry{InodeSize: 256}, "inodeSize is 256"},
		{"xfs", Geometry{BlockSize: 1024, InodeSize: 1024}, "half the block size, 512"},
		{"xfs", Geometry{BytesPerInode: 4096}, "bytesPerInode"},
		{"xfs", Geometry{Inodes: 4096, BigAlloc: true}, "numberOfInodes and ext4BigAlloc"},
		{"btrfs", Geometry{BlockSize: 4096}, "blockSize"},
	} {
		if err := c.g.Check(c.fsType); !failure.Is(err, failure.Invalid) || !strings.Contains(err.Error(), c.key) {
			t.Errorf("%s with %+v: got %v, want Invalid with %q", c.fsType, c.g, err, c.key)
		}
	}
	for _, fsType := range mountoptions.Filesystems() {
		if err := (Geometry{}).Check(fsType); err != nil {
			t.Errorf("%s: %v", fsType, err)
		}
	}
}

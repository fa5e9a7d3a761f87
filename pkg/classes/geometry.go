package classes

import (
	"cmp"
	"math/bits"
	"strings"

	"github.com/stowage-csi/stowage/pkg/failure"
	"github.com/stowage-csi/stowage/pkg/secret"
)

// Geometry holds the class parameters for the layout of a new filesystem. The zero value leaves the layout to mkfs. The
// names are those of aws-ebs-csi-driver. Sizes are in bytes.
type Geometry struct {
	BlockSize     int64 `param:"blockSize" alias:"blocksize" min:"1024" max:"4096" doc:"Block size of a new ext4 or xfs in bytes: 1024, 2048 or 4096, which is the most that every kernel mounts."`
	InodeSize     int64 `param:"inodeSize" alias:"inodesize" min:"128" max:"4096" doc:"Inode size of a new ext4 or xfs in bytes, a power of two; xfs takes 512 to 2048."`
	BytesPerInode int64 `param:"bytesPerInode" alias:"bytesperinode" min:"1024" max:"67108864" doc:"A new ext4 gets one inode for so many bytes."`
	Inodes        int64 `param:"numberOfInodes" alias:"numberofinodes" min:"16" max:"4294967295" doc:"Number of inodes of a new ext4."`
	BigAlloc      bool  `param:"ext4BigAlloc" alias:"ext4bigalloc" doc:"Let a new ext4 allocate clusters of blocks."`
	ClusterSize   int64 `param:"ext4ClusterSize" alias:"ext4clustersize" min:"2048" max:"268435456" doc:"Size of such a cluster in bytes, a power of two; with ext4BigAlloc only. 16 blocks without it."`
}

// Check fails if a filesystem of the type cannot have this layout. Kinds: Invalid, naming the parameter.
func (g Geometry) Check(fsType string) error {
	for _, size := range []struct {
		key   string
		value int64
	}{{"blockSize", g.BlockSize}, {"inodeSize", g.InodeSize}, {"ext4ClusterSize", g.ClusterSize}} {
		if bits.OnesCount64(uint64(size.value)) > 1 {
			return failure.Errorf(failure.Invalid, "%s is %d: it must be a power of two", size.key, size.value)
		}
	}
	if other := g.foreign(fsType); len(other) > 0 {
		return failure.Errorf(failure.Invalid, "%s cannot be chosen for the filesystem %s: leave it out, or use ext4",
			strings.Join(other, " and "), secret.Option(fsType))
	}
	return g.together(fsType)
}

// together checks combinations of parameters.
func (g Geometry) together(fsType string) error {
	block, half := max(g.BlockSize, 1024), cmp.Or(g.BlockSize, 4096)/2
	switch {
	case g.BytesPerInode != 0 && g.Inodes != 0:
		return failure.Errorf(failure.Invalid, "bytesPerInode and numberOfInodes exclude each other: leave one out")
	case g.ClusterSize != 0 && !g.BigAlloc:
		return failure.Errorf(failure.Invalid,
			"ext4ClusterSize goes with ext4BigAlloc only: give ext4BigAlloc: \"true\" too or leave it out")
	case g.ClusterSize != 0 && g.ClusterSize <= block:
		return failure.Errorf(failure.Invalid, "ext4ClusterSize is %d: it must be above the block size, %d", g.ClusterSize,
			block)
	case g.BlockSize != 0 && g.InodeSize > g.BlockSize:
		return failure.Errorf(failure.Invalid, "inodeSize is %d: it cannot be above blockSize, %d", g.InodeSize, g.BlockSize)
	case g.BytesPerInode != 0 && g.BytesPerInode < g.BlockSize:
		return failure.Errorf(failure.Invalid, "bytesPerInode is %d: it cannot be below blockSize, %d", g.BytesPerInode,
			g.BlockSize)
	case fsType == "xfs" && g.InodeSize != 0 && (g.InodeSize < 512 || g.InodeSize > half):
		return failure.Errorf(failure.Invalid, "inodeSize is %d: xfs takes 512 up to half the block size, %d", g.InodeSize,
			half)
	}
	return nil
}

// foreign returns the parameters that are set and that the type does not support.
func (g Geometry) foreign(fsType string) (keys []string) {
	for _, p := range []struct {
		key   string
		set   bool
		types string
	}{
		{"blockSize", g.BlockSize != 0, "ext4 xfs"},
		{"inodeSize", g.InodeSize != 0, "ext4 xfs"},
		{"bytesPerInode", g.BytesPerInode != 0, "ext4"},
		{"numberOfInodes", g.Inodes != 0, "ext4"},
		{"ext4BigAlloc", g.BigAlloc, "ext4"},
		{"ext4ClusterSize", g.ClusterSize != 0, "ext4"},
	} {
		if p.set && !strings.Contains(p.types, fsType) {
			keys = append(keys, p.key)
		}
	}
	return keys
}

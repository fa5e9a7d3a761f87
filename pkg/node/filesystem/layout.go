package filesystem

import (
	"fmt"

	"github.com/stowage-csi/stowage/pkg/classes"
)

// optionsOf returns the options of mkfs (mke2fs(8), mkfs.xfs(8)).
func optionsOf(g classes.Geometry, fsType string) (args []string) {
	add := func(set bool, option, format string, value int64) {
		if set {
			args = append(args, option, fmt.Sprintf(format, value))
		}
	}
	if fsType == "xfs" {
		add(g.BlockSize != 0, "-b", "size=%d", g.BlockSize)
		add(g.InodeSize != 0, "-i", "size=%d", g.InodeSize)
		return args
	}
	add(g.BlockSize != 0, "-b", "%d", g.BlockSize)
	add(g.InodeSize != 0, "-I", "%d", g.InodeSize)
	add(g.BytesPerInode != 0, "-i", "%d", g.BytesPerInode)
	add(g.Inodes != 0, "-N", "%d", g.Inodes)
	if g.BigAlloc {
		args = append(args, "-O", "bigalloc")
	}
	add(g.ClusterSize != 0, "-C", "%d", g.ClusterSize)
	return args
}

package filesystem

import (
	"encoding/binary"
	"testing"

	"github.com/stowage-csi/stowage/pkg/classes"
)

// number is a number of so many bytes in a filesystem's first superblock.
type number struct {
	at, bytes int64
	order     binary.ByteOrder
}

func (n number) of(t *testing.T, disk interface {
	ReadAt(p []byte, at int64) (int, error)
}) int64 {
	t.Helper()
	data := make([]byte, n.bytes)
	if _, err := disk.ReadAt(data, n.at); err != nil {
		t.Fatal(err)
	}
	if n.bytes == 2 {
		return int64(n.order.Uint16(data))
	}
	return int64(n.order.Uint32(data))
}

func TestGeometry(t *testing.T) {
	const mib = 1 << 20
	var (
		le, be     = binary.LittleEndian, binary.BigEndian
		extInodes  = number{1024, 4, le}
		extBlock   = number{1024 + 24, 4, le} // 1024 << n
		extCluster = number{1024 + 28, 4, le} // 1024 << n
		extInode   = number{1024 + 88, 2, le}
		xfsBlock   = number{4, 4, be}
		xfsInode   = number{104, 2, be}
	)
	for name, c := range map[string]struct {
		fsType string
		size   int64
		g      classes.Geometry
		want   map[number]int64
	}{
		"ext4, blocks and inodes": {"ext4", 16 * mib, classes.Geometry{BlockSize: 4096, InodeSize: 512, Inodes: 1024},
			map[number]int64{extBlock: 2, extInode: 512, extInodes: 1024}},
		"ext4, bytes for an inode": {"ext4", 16 * mib, classes.Geometry{BytesPerInode: 65536},
			map[number]int64{extInodes: 256}},
		"ext4, clusters": {"ext4", 64 * mib, classes.Geometry{BlockSize: 4096, BigAlloc: true, ClusterSize: 16384},
			map[number]int64{extBlock: 2, extCluster: 4}},
		"xfs": {"xfs", 300 * mib, classes.Geometry{BlockSize: 2048, InodeSize: 1024},
			map[number]int64{xfsBlock: 2048, xfsInode: 1024}},
	} {
		t.Run(name, func(t *testing.T) {
			needTools(t, c.fsType)
			d := attach(t, image(t, c.size))
			if _, err := NewTools(1).Format(t.Context(), laidOut(d, c.fsType, c.g)); err != nil {
				t.Fatal(err)
			}
			for n, want := range c.want {
				if got := n.of(t, d.File); got != want {
					t.Errorf("the number at %d is %d, want %d", n.at, got, want)
				}
			}
			if found := probe(t, d.File); found.Type != c.fsType {
				t.Errorf("the device holds %s", found)
			}
			mountOnce(t, d, c.fsType)
		})
	}
}

package filesystem

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// superblock reads numbers of so many bytes from a filesystem's first superblock.
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
		g      Geometry
		want   map[number]int64
	}{
		"ext4, blocks and inodes":  {"ext4", 16 * mib, Geometry{BlockSize: 4096, InodeSize: 512, Inodes: 1024}, map[number]int64{extBlock: 2, extInode: 512, extInodes: 1024}},
		"ext4, bytes for an inode": {"ext4", 16 * mib, Geometry{BytesPerInode: 65536}, map[number]int64{extInodes: 256}},
		"ext4, clusters":           {"ext4", 64 * mib, Geometry{BlockSize: 4096, BigAlloc: true, ClusterSize: 16384}, map[number]int64{extBlock: 2, extCluster: 4}},
		"xfs":                      {"xfs", 300 * mib, Geometry{BlockSize: 2048, InodeSize: 1024}, map[number]int64{xfsBlock: 2048, xfsInode: 1024}},
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

func TestGeometryThatCannotBe(t *testing.T) {
	for _, c := range []struct {
		fsType string
		g      Geometry
		key    string // what the error names
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
		if err := c.g.Check(c.fsType); !backends.Is(err, backends.Invalid) || !strings.Contains(err.Error(), c.key) {
			t.Errorf("%s with %+v: got %v, want Invalid with %q", c.fsType, c.g, err, c.key)
		}
	}
	for _, fsType := range Types() {
		if err := (Geometry{}).Check(fsType); err != nil {
			t.Errorf("%s: %v", fsType, err)
		}
	}
}

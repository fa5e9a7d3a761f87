package filesystem

import (
	"encoding/binary"
	"math"
	"os"
	"slices"
)

// The superblocks of ext2, 3 and 4 and of btrfs are at these offsets, in bytes; that of xfs is at the start.
const (
	extOffset   = 1024
	btrfsOffset = 64 << 10
)

// The features that distinguish the kinds of ext filesystems (Documentation/filesystems/ext4/super.rst).
const (
	extHasJournal    = 0x4   // compatible
	extJournalDev    = 0x8   // incompatible
	extRecover       = 0x4   // incompatible: the journal is to be replayed
	ext64Bit         = 0x80  // incompatible
	extBigAlloc      = 0x200 // read-only compatible: it allocates clusters of blocks
	ext3Incompat     = 0x16  // filetype, recover, meta_bg: all that ext3 knows
	ext3ROCompat     = 0x7   // sparse_super, large_file, btree_dir: all that ext3 knows
	extStateClean    = 0x1   // s_state: unmounted cleanly
	extStateErrors   = 0x2   // s_state: errors were found
	extMaxLogBlock   = 6     // blocks of 64 KiB
	extMaxLogCluster = 20    // clusters of 1 GiB
	extSuperblock    = 1024  // bytes
	extOldInodeSize  = 128   // bytes, of revision 0
)

// readExt reads the superblock of ext2, ext3 and ext4.
func readExt(w *window, offset int64) (Found, bool) {
	sb := w.at(offset, extSuperblock)
	if sb == nil || sb[56] != 0x53 || sb[57] != 0xef {
		return Found{}, false
	}
	u32, u16 := binary.LittleEndian.Uint32, binary.LittleEndian.Uint16
	incompat, state := u32(sb[96:]), u16(sb[58:])
	f := Found{
		Type:   extType(u32(sb[92:]), incompat, u32(sb[100:])),
		UUID:   uuidText(sb[104:120]),
		Unused: u32(sb[44:]) == 0 && u16(sb[52:]) == 0, // s_mtime, s_mnt_count
		Dirty:  state&extStateClean == 0 || state&extStateErrors != 0,

		Unreplayed: incompat&extRecover != 0,
		Devices:    1,
	}
	// The kernel finds an external journal by s_journal_dev, and e2fsck by s_journal_uuid. Neither is set for a journal
	// on the same device.
	if u32(sb[228:]) != 0 || [16]byte(sb[208:224]) != [16]byte{} {
		f.Devices++
	}
	f.Incomplete = f.Unused && state&extStateClean == 0
	if u32(sb[24:]) > extMaxLogBlock {
		return f, true
	}
	block := int64(1024) << u32(sb[24:])
	blocks := uint64(u32(sb[4:]))
	if incompat&ext64Bit != 0 {
		blocks |= uint64(u32(sb[336:])) << 32
	}
	f.SizeBytes = product(blocks, block)
	f.grid = extGrid(sb, block, blocks)
	return f, true
}

func extType(compat, incompat, roCompat uint32) string {
	switch {
	case incompat&extJournalDev != 0:
		return "jbd"
	case incompat&^ext3Incompat != 0 || roCompat&^ext3ROCompat != 0:
		return "ext4"
	case compat&extHasJournal != 0:
		return "ext3"
	}
	return "ext2"
}

// extGrid follows resize2fs(8), which drops a last block group that has no room for its own metadata: bitmaps, inode
// table, copies of superblock and descriptors, and 50 spare blocks.
func extGrid(sb []byte, block int64, blocks uint64) grid {
	u32, u16 := binary.LittleEndian.Uint32, binary.LittleEndian.Uint16
	inode := int64(extOldInodeSize)
	if u32(sb[76:]) > 0 {
		inode = int64(u16(sb[88:]))
	}
	step := int64(os.Getpagesize()) // mke2fs and resize2fs use whole pages only, and whole clusters
	if u32(sb[100:])&extBigAlloc != 0 && u32(sb[28:]) <= extMaxLogCluster {
		step = max(step, 1024<<u32(sb[28:])) // s_log_cluster_size
	}
	perGroup := int64(u32(sb[32:]))
	if perGroup == 0 {
		return grid{block: block, step: step}
	}
	groups := int64(blocks/uint64(perGroup)) + 1
	descriptors := groups*64/block + 1
	tables := int64(u32(sb[40:])) * inode / block
	reserved := int64(u16(sb[206:]))
	return grid{block: block, group: perGroup, first: int64(u32(sb[20:])), step: step,
		least: 2 + tables + 1 + descriptors + reserved + 50}
}

// readXFS reads the superblock of xfs (xfs_dsb in the kernel's fs/xfs/libxfs/xfs_format.h).
func readXFS(w *window, offset int64) (Found, bool) {
	sb := w.at(offset, 512)
	if sb == nil || string(sb[:4]) != "XFSB" {
		return Found{}, false
	}
	block := int64(binary.BigEndian.Uint32(sb[4:]))
	const leastGroup = 64 // XFS_MIN_AG_BLOCKS
	return Found{
		Type:       "xfs",
		UUID:       uuidText(sb[32:48]),
		SizeBytes:  product(binary.BigEndian.Uint64(sb[8:]), block),
		Incomplete: sb[126] != 0, // sb_inprogress
		Unused:     unusedXFS(w, sb, block),
		grid:       grid{block: block, group: int64(binary.BigEndian.Uint32(sb[84:])), least: leastGroup},
	}, true
}

// unusedXFS reports whether an xfs was never mounted: its superblock has not been logged (sb_lsn), and its log is as
// mkfs.xfs leaves it, with the record of an unmount in two sectors and zeros after that. A mount first overwrites those
// (xlog_clear_stale_blocks).
func unusedXFS(w *window, sb []byte, block int64) bool {
	start, ok := logStart(sb, block)
	if !ok || binary.BigEndian.Uint64(sb[240:]) != 0 {
		return false
	}
	next := w.at(start+2*logBlock, 2*logBlock)
	return next != nil && !slices.ContainsFunc(next, func(b byte) bool { return b != 0 })
}

// logStart returns the offset in bytes of the log of an xfs whose log is on its own device.
func logStart(sb []byte, block int64) (int64, bool) {
	u64, u32 := binary.BigEndian.Uint64, binary.BigEndian.Uint32
	logStart, groupBits := u64(sb[48:]), sb[124] // sb_logstart, whose high bits are the group's number; sb_agblklog
	if logStart == 0 || block <= 0 || groupBits >= 64 {
		return 0, false
	}
	start := product(logStart>>groupBits, int64(u32(sb[84:]))) + int64(logStart&(1<<groupBits-1)) // sb_agblocks
	return product(uint64(start), block), true
}

// btrfsLeastResize is the size in bytes below which the kernel resizes no btrfs, although one can be created.
const btrfsLeastResize = 256 << 20

// Offsets in the superblock of btrfs.
const (
	generation          = 72
	chunkRootGeneration = 164
	uuidTreeGeneration  = 563
)

// readBtrfs reads the superblock of btrfs. While mkfs.btrfs runs, the magic is different.
func readBtrfs(w *window, offset int64) (Found, bool) {
	sb := w.at(offset, 4096)
	if sb == nil {
		return Found{}, false
	}
	name := string(sb[64:72])
	if name != "_BHRfS_M" && name != "!BHRfS_M" {
		return Found{}, false
	}
	const deviceItem = 0xc9
	u64 := func(offset int) uint64 { return binary.LittleEndian.Uint64(sb[offset:]) }
	total, log := u64(deviceItem+8), u64(96)
	return Found{
		Type:       "btrfs",
		UUID:       uuidText(sb[32:48]),
		SizeBytes:  product(total, 1),
		Devices:    u64(136), // num_devices
		Incomplete: name != "_BHRfS_M",
		Unreplayed: log != 0,
		// The last transaction of mkfs.btrfs includes the chunk tree. Later transactions of the kernel do not, unless they
		// create a chunk. The kernel sets the other field after it has checked a tree, which an early unmount may prevent.
		Unused: log == 0 && u64(uuidTreeGeneration) == 0 && u64(generation) == u64(chunkRootGeneration),
		grid:   grid{block: int64(binary.LittleEndian.Uint32(sb[144:])), device: btrfsLeastResize},
	}, true
}

// product multiplies a count by a size in bytes. It returns 0, which stands for unknown, if the result is no possible
// size of a device.
func product(count uint64, size int64) int64 {
	if size <= 0 || count > math.MaxInt64/uint64(size) {
		return 0
	}
	return int64(count) * size
}

package filesystem

import (
	"cmp"
	"slices"
	"strings"
)

// place is where something may have survived the loss of the beginning of a device.
type place struct {
	offset int64  // in bytes
	name   string // of the thing
	at     int64  // of its magic, within the thing
	magic  string
}

// page returns the offset of the page that contains the place, which is read.
func (p place) page() int64 { return p.offset &^ (markSize - 1) }

// on reports whether the thing is on the page.
func (p place) on(page []byte) bool {
	return p.magic != "" && strings.HasPrefix(string(page[p.offset-p.page()+p.at:]), p.magic)
}

// places returns where filesystems keep copies of their beginning, in the order of their offsets, one for each page. It
// omits places in the signature areas.
func places(size int64) []place {
	const mib, gib = 1 << 20, 1 << 30
	var list []place
	// Most tools choose one of these as the start of a partition or a logical volume.
	for _, start := range []int64{0, mib} {
		list = append(list, extPlaces(start, size)...)
		for _, mirror := range []int64{64 * mib, 256 * gib} {
			list = append(list, place{start + mirror, "a mirror of a btrfs superblock", 64, "_BHRfS_M"})
		}
	}
	list = append(list, xfsPlaces(0, size, 2, 4, 8, 16, 32, 64)...)
	const gptEnd = 33 * 512 // the second GPT; or the partition ends at a whole MiB
	list = append(list, xfsPlaces(mib, size-mib-gptEnd, 4, 16)...)
	list = append(list, xfsPlaces(mib, (size-gptEnd)/mib*mib-mib, 4, 16)...)
	for offset := int64(gib); offset < size; offset *= 4 {
		list = append(list, place{offset, "a copy of an ocfs2 superblock", 0, "OCFSV2"})
	}
	for offset := int64(gib); offset < size; offset *= 10 {
		list = append(list, place{offset, "a copy of a Ceph BlueStore label", 0, "bluestore block device"})
	}
	return tidy(list, size)
}

// extPlaces returns places of second superblocks of an ext filesystem that begins at an offset, for each block size and
// for clusters of the usual 16 blocks. It returns the first ones. For the most common block size, and a start at 0, it
// returns all of them, since any number of them may have been overwritten.
func extPlaces(start, size int64) (list []place) {
	const few = 81
	for _, ext := range []struct{ block, blocks, last int64 }{
		{1 << 10, 8 << 10, few}, {2 << 10, 16 << 10, few}, {4 << 10, 32 << 10, size}, {4 << 10, 16 * 32 << 10, few},
		{64 << 10, 65528, few},
	} {
		first, last := int64(0), min(ext.last, (size-start)/(ext.block*ext.blocks))
		if ext.block == extOffset {
			first = 1 // the boot block
		}
		if start > 0 {
			last = min(last, few/9)
		}
		for _, group := range groupsWithCopies(last) {
			list = append(list, place{start + (group*ext.blocks+first)*ext.block, "a second superblock of an ext filesystem", 56,
				"\x53\xef"})
		}
	}
	return list
}

// groupsWithCopies returns the groups up to the last that have a copy of the superblock: the first and the powers of 3,
// 5 and 7 (sparse_super).
func groupsWithCopies(last int64) []int64 {
	groups := []int64{1}
	for _, base := range []int64{3, 5, 7} {
		for group := base; group <= last; group *= base {
			groups = append(groups, group)
		}
	}
	return groups
}

// xfsPlaces returns the superblocks of the second to fourth allocation groups of an xfs of this size that begins at an
// offset, for group counts that mkfs.xfs chooses.
func xfsPlaces(start, size int64, counts ...int64) (list []place) {
	const block = 4096
	for _, count := range counts {
		length := (size/block + count - 1) / count * block
		for group := int64(1); group < min(count, 4); group++ {
			list = append(list, place{start + group*length, "a second superblock of an xfs", 0, "XFSB"})
		}
	}
	return list
}

// samplePlaces returns where to look for unknown data: eight places in each doubling of the offset, at round numbers,
// where partitions and other structures begin, and some spread evenly over the device.
func samplePlaces(size int64) []place {
	const (
		each, even = 8, 64
		near       = 128 << 20 // up to here also look for a btrfs, whose superblock is not at its start
	)
	var list []place
	for octave := int64(4 << 20); octave < size; octave *= 2 {
		for i := range int64(each) {
			offset := octave + octave/each*i
			list = append(list, place{offset: offset})
			if offset < near {
				list = append(list, place{offset: offset + btrfsOffset})
			}
		}
	}
	for i := range int64(even) {
		list = append(list, place{offset: size / even * i})
	}
	return tidy(list, size)
}

// tidy sorts places by page, and omits those in the signature areas and duplicates on a page.
func tidy(list []place, size int64) []place {
	list = slices.DeleteFunc(list, func(p place) bool {
		return p.page() < headArea || p.page() >= size-tailArea
	})
	slices.SortStableFunc(list, func(a, b place) int { return cmp.Compare(a.page(), b.page()) })
	return slices.CompactFunc(list, func(a, b place) bool { return a.page() == b.page() })
}

// pages returns the extents that are read for the places.
func pages(list []place) []extent {
	extents := make([]extent, len(list))
	for i, p := range list {
		extents[i] = extent{p.page(), markSize}
	}
	return extents
}

package filesystem

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
)

// The entries of a DOS partition table, in its sector.
const (
	mbrEntries, mbrEntry, mbrEnd = 446, 16, 510
	mbrProtective                = 0xee // the type of the entry that protects a GPT
)

// mbrOf returns the sector of a DOS partition table; nil when it has not its signature.
func mbrOf(w *window) []byte {
	sector := w.at(0, 512)
	if sector == nil || sector[mbrEnd] != 0x55 || sector[mbrEnd+1] != 0xaa {
		return nil
	}
	return sector
}

// readMBR recognises a DOS partition table: the signature, and four entries that are marked bootable or
// not and no third way. The table that protects a GPT is part of that one.
func readMBR(w *window, _ int64) (Found, bool) {
	sector := mbrOf(w)
	if sector == nil {
		return Found{}, false
	}
	used := false
	for entry := mbrEntries; entry < mbrEnd; entry += mbrEntry {
		if sector[entry]&0x7f != 0 || sector[entry+4] == mbrProtective {
			return Found{}, false
		}
		used = used || sector[entry+4] != 0
	}
	return Found{Type: "dos"}, used
}

// mbrInUse tells whether a table that was recognised has a partition on the device. A boot sector of a filesystem has none.
func mbrInUse(w *window, _ int64) bool {
	sector := mbrOf(w)
	for entry := mbrEntries; entry < mbrEnd; entry += mbrEntry {
		start, length := binary.LittleEndian.Uint32(sector[entry+8:]), binary.LittleEndian.Uint32(sector[entry+12:])
		if sector[entry+4] != 0 && start != 0 && length != 0 && int64(start)*512 < w.size {
			return true
		}
	}
	return false
}

const gptMagic = "EFI PART"

// gptInUse tells whether a GPT with sectors of so many bytes is one by which the kernel finds partitions (block/partitions/efi.c): with
// a sum that is right, at the place that it names, with a DOS partition table to protect it, and with a partition. What
// is left at the end of a device that was formatted since is not protected.
func gptInUse(sector int64) func(*window, int64) bool {
	return func(w *window, offset int64) bool {
		h := w.at(offset, 92)
		if h == nil || !protectsGPT(mbrOf(w)) {
			return false
		}
		u32, u64 := binary.LittleEndian.Uint32, binary.LittleEndian.Uint64
		length, sum := int64(u32(h[12:])), u32(h[16:])
		if length < 92 || length > sector || u64(h[24:]) != uint64(offset/sector) {
			return false
		}
		header := bytes.Clone(w.at(offset, length))
		if header == nil {
			return false
		}
		clear(header[16:20])
		return crc32.ChecksumIEEE(header) == sum && hasPartition(w, product(u64(h[72:]), sector), int64(u32(h[80:])), int64(u32(h[84:])))
	}
}

// protectsGPT tells whether a DOS partition table is there only to protect a GPT.
func protectsGPT(sector []byte) bool {
	for entry := mbrEntries; sector != nil && entry < mbrEnd; entry += mbrEntry {
		if sector[entry+4] == mbrProtective {
			return true
		}
	}
	return false
}

// hasPartition tells whether an entry of a GPT's is used: then it has a type.
func hasPartition(w *window, offset, count, size int64) bool {
	const most = 128 << 10 // bytes, far more than any table has
	if size < 128 || count < 1 || count > most/size {
		return false
	}
	table := w.at(offset, count*size)
	for at := int64(0); at+16 <= int64(len(table)); at += size {
		if !bytes.Equal(table[at:at+16], make([]byte, 16)) {
			return true
		}
	}
	return false
}

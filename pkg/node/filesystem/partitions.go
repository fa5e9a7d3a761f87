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

// mbrOf returns the sector of a DOS partition table; nil if it lacks the signature.
func mbrOf(w *window) []byte {
	sector := w.at(0, 512)
	if sector == nil || sector[mbrEnd] != 0x55 || sector[mbrEnd+1] != 0xaa {
		return nil
	}
	return sector
}

// readMBR recognises a DOS partition table: the signature, and four entries with a valid bootable flag. A table that
// protects a GPT is part of the GPT.
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

// mbrInUse reports whether a recognised table has a partition on the device. The boot sector of a filesystem has none.
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

const (
	gptMagic = "EFI PART"
	// gptFirst is the offset of the first header of a GPT with sectors of 512 bytes. No filesystem keeps data there, and
	// each mkfs of mountable clears it or writes its own there, so that the header is younger than the filesystem.
	gptFirst = 512
)

// gptSeen reports whether a GPT with this sector size counts. It does if a DOS partition table protects it, and as the
// first header with sectors of 512 bytes, whatever its checksum is. Otherwise it does if its checksum is right and it
// is at the place that it names.
func gptSeen(sector int64) func(*window, int64) bool {
	return func(w *window, offset int64) bool {
		h := w.at(offset, 92)
		if h == nil || offset == gptFirst || protectsGPT(mbrOf(w)) {
			return h != nil
		}
		if offset > sector && w.size%markSize != 0 {
			return false // mkfs may leave an old one at the end of such a device
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
		return crc32.ChecksumIEEE(header) == sum
	}
}

// readProtective recognises a DOS partition table that only protects a GPT, which may have been lost.
func readProtective(w *window, _ int64) (Found, bool) {
	sector := mbrOf(w)
	if sector == nil {
		return Found{}, false
	}
	for entry := mbrEntries; entry < mbrEnd; entry += mbrEntry {
		if sector[entry]&0x7f != 0 {
			return Found{}, false // boot code
		}
	}
	return Found{Type: "gpt"}, protectsGPT(sector)
}

// protectsGPT reports whether a DOS partition table has an entry that protects a GPT.
func protectsGPT(sector []byte) bool {
	for entry := mbrEntries; sector != nil && entry < mbrEnd; entry += mbrEntry {
		if sector[entry+4] == mbrProtective {
			return true
		}
	}
	return false
}

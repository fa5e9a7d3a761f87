package filesystem

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// uuidText renders the 16 bytes of a UUID in its usual form; nothing for all zero.
func uuidText(b []byte) string {
	if len(b) != 16 || strings.Trim(string(b), "\x00") == "" {
		return ""
	}
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// readLVM recognises the label of an LVM2 physical volume in one of the first four sectors.
func readLVM(w *window, offset int64) (Found, bool) {
	return Found{Type: "LVM2_member"}, w.has(offset, "LABELONE") && w.has(offset+24, "LVM2 001")
}

// Linux software RAID (md(4)) has its superblock at the start (version 1.1), at 4096 bytes (1.2) or at one
// of these two places near the end.
func raid10Place(size int64) int64 { return (size/512 - 16) &^ 7 * 512 }
func raid09Place(size int64) int64 { return size&^(64<<10-1) - 64<<10 }

// readRAID1 recognises a superblock of version 1, which says where it must be.
func readRAID1(w *window, offset int64) (Found, bool) {
	b := w.at(offset, 152)
	if b == nil || binary.LittleEndian.Uint32(b) != raidNumber || binary.LittleEndian.Uint32(b[4:]) != 1 ||
		binary.LittleEndian.Uint64(b[144:]) != uint64(offset/512) {
		return Found{}, false
	}
	return Found{Type: "linux_raid_member", UUID: uuidText(b[16:32])}, true
}

// readRAID09 recognises a superblock of version 0.90, in the byte order of the machine that made it.
func readRAID09(w *window, offset int64) (Found, bool) {
	b := w.at(offset, 8)
	return Found{Type: "linux_raid_member"}, b != nil && binary.NativeEndian.Uint32(b[4:]) == 0 &&
		(binary.LittleEndian.Uint32(b) == raidNumber || binary.BigEndian.Uint32(b) == raidNumber)
}

// raidNumber is MD_SB_MAGIC.
const raidNumber = 0xa92b4efc

// readZFS recognises a ZFS label (vdev label, 256 KiB) by the uberblocks in its second half, of which
// at least one is there in a pool that was ever written.
func readZFS(w *window, offset int64) (Found, bool) {
	const ring, step = 128 << 10, 1 << 10
	for at := offset + ring; at < offset+2*ring; at += step {
		b := w.at(at, 8)
		if b == nil {
			return Found{}, false
		}
		const uberblock = 0x00bab10c
		if binary.LittleEndian.Uint64(b) == uberblock || binary.BigEndian.Uint64(b) == uberblock {
			return Found{Type: "zfs_member"}, true
		}
	}
	return Found{}, false
}

// readSwap recognises swap space and hibernation images: the signature is the end of the first page,
// whose size differs between machines, so that offset is the page's end.
func readSwap(w *window, offset int64) (Found, bool) {
	switch string(w.at(offset-10, 10)) {
	case "SWAPSPACE2", "SWAP-SPACE":
		return Found{Type: "swap", UUID: uuidText(w.at(1036, 16))}, true
	case "S1SUSPEND\x00", "S2SUSPEND\x00", "ULSUSPEND\x00", "LINHIB0001":
		return Found{Type: "swsuspend"}, true
	}
	return Found{}, false
}

// readUDF recognises the volume recognition sequence of UDF (ECMA-167, part 2), behind that of an
// ISO 9660 if the disc has both.
func readUDF(w *window, offset int64) (Found, bool) {
	for sector := range int64(16) {
		at := offset + sector*2048 + 1
		if w.has(at, "NSR02") || w.has(at, "NSR03") || w.has(at, "BEA01") {
			return Found{Type: "udf"}, true
		}
	}
	return Found{}, false
}

// readFAT recognises the FAT family by the name in the boot sector.
func readFAT(w *window, _ int64) (Found, bool) {
	if !w.has(510, "\x55\xaa") {
		return Found{}, false
	}
	for _, name := range []string{"FAT12   ", "FAT16   ", "FAT     ", "MSDOS"} {
		if w.has(54, name) {
			return Found{Type: "vfat"}, true
		}
	}
	return Found{Type: "vfat"}, w.has(82, "FAT32   ")
}

// readMBR recognises a DOS partition table: the signature, and four entries that are marked bootable or
// not and no third way. The table that protects a GPT is part of that one.
func readMBR(w *window, _ int64) (Found, bool) {
	sector := w.at(0, 512)
	if sector == nil || sector[510] != 0x55 || sector[511] != 0xaa {
		return Found{}, false
	}
	used := false
	for entry := 446; entry < 510; entry += 16 {
		const protective = 0xee
		if sector[entry]&0x7f != 0 || sector[entry+4] == protective {
			return Found{}, false
		}
		used = used || sector[entry+4] != 0
	}
	return Found{Type: "dos"}, used
}

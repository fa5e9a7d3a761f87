package filesystem

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// uuidText formats the 16 bytes of a UUID in its usual form; an empty string for all zeros.
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

// Linux software RAID (md(4)) has its superblock at the start (version 1.1), at 4096 bytes (1.2) or at one of these two
// places near the end.
func raid10Place(size int64) int64 { return (size/512 - 16) &^ 7 * 512 }
func raid09Place(size int64) int64 { return size&^(64<<10-1) - 64<<10 }

// readRAID1 recognises a superblock of version 1, which contains its own place.
func readRAID1(w *window, offset int64) (Found, bool) {
	b := w.at(offset, 152)
	if b == nil || binary.LittleEndian.Uint32(b) != raidNumber || binary.LittleEndian.Uint32(b[4:]) != 1 ||
		binary.LittleEndian.Uint64(b[144:]) != uint64(offset/512) {
		return Found{}, false
	}
	return Found{Type: "linux_raid_member", UUID: uuidText(b[16:32])}, true
}

// readRAID09 recognises a superblock of version 0.90, in the byte order of the machine that created it.
func readRAID09(w *window, offset int64) (Found, bool) {
	b := w.at(offset, 4)
	return Found{Type: "linux_raid_member"}, b != nil &&
		(binary.LittleEndian.Uint32(b) == raidNumber || binary.BigEndian.Uint32(b) == raidNumber)
}

// readLUKS2 recognises the second header of LUKS2, which contains its own place and serves to restore a lost first
// header. mkfs clears the places that are checked here. It leaves others, which are checked late.
func readLUKS2(w *window, offset int64) (Found, bool) {
	const place = 256 // of hdr_offset
	at := w.at(offset+place, 8)
	return Found{Type: "crypto_LUKS"}, at != nil && w.has(offset, "SKUL\xba\xbe\x00\x02") &&
		binary.BigEndian.Uint64(at) == uint64(offset)
}

// VMFS identifies a volume and a filesystem at these places.
const (
	vmfsVolume     = 1 << 20
	vmfsFilesystem = 2 << 20
)

// always is for signatures that need no further check.
func always(*window, int64) bool { return true }

// raidNumber is MD_SB_MAGIC.
const raidNumber = 0xa92b4efc

// readZFS recognises a ZFS label (vdev label, 256 KiB) by the uberblocks in its second half. A pool that was ever
// written has at least one.
func readZFS(w *window, offset int64) (Found, bool) {
	const ring, step = 128 << 10, 1 << 10
	blocks := w.at(offset+ring, ring)
	for at := 0; at < len(blocks); at += step {
		b := blocks[at:]
		const uberblock = 0x00bab10c
		if binary.LittleEndian.Uint64(b) == uberblock || binary.BigEndian.Uint64(b) == uberblock {
			return Found{Type: "zfs_member"}, true
		}
	}
	return Found{}, false
}

// readZFSConfig recognises the first ZFS label by its configuration: an nvlist in XDR that begins with the pool's
// version. Then the rest of the label, which takes many reads, need not be checked.
func readZFSConfig(w *window, offset int64) (Found, bool) {
	const config = 16 << 10
	return Found{Type: "zfs_member"}, w.has(offset+config, "\x01\x01\x00\x00") && w.has(offset+config+24, "version\x00")
}

// readSwap recognises swap space and hibernation images. The signature is at the end of the first page, whose size
// differs between machines, so offset is the end of the page.
func readSwap(w *window, offset int64) (Found, bool) {
	switch string(w.at(offset-10, 10)) {
	case "SWAPSPACE2", "SWAP-SPACE":
		return Found{Type: "swap", UUID: uuidText(w.at(1036, 16))}, true
	case "S1SUSPEND\x00", "S2SUSPEND\x00", "ULSUSPEND\x00", "LINHIB0001":
		return Found{Type: "swsuspend"}, true
	}
	return Found{}, false
}

// readUDF recognises the volume recognition sequence of UDF (ECMA-167, part 2), which follows that of ISO 9660 if the
// disc has both.
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

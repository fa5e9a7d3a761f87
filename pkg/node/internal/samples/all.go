package samples

import "slices"

// All returns a sample of each kind of contents that a device can have.
func All() []Sample { return slices.Concat(filesystems(), members(), others()) }

// filesystems returns samples of common filesystems, and of swap.
func filesystems() []Sample {
	return []Sample{
		{Name: "ext2", Want: "ext2", tool: []string{"mkfs.ext2", "-q", "IMAGE"}},
		{Name: "ext3", Want: "ext3", tool: []string{"mkfs.ext3", "-q", "IMAGE"}},
		{Name: "ext4", Want: "ext4", tool: []string{"mkfs.ext4", "-q", "IMAGE"}},
		{Name: "ext4 without journal", Want: "ext4", tool: []string{"mkfs.ext4", "-q", "-O", "^has_journal", "IMAGE"}},
		{Name: "ext4 with 1k blocks", Want: "ext4", tool: []string{"mkfs.ext4", "-q", "-b", "1024", "IMAGE"}},
		{Name: "external journal", Want: "jbd", tool: []string{"mkfs.ext4", "-q", "-O", "journal_dev", "IMAGE"}},
		{Name: "xfs", Want: "xfs", size: 300 * mib, tool: []string{"mkfs.xfs", "-q", "IMAGE"}, write: Bytes(0, "XFSB")},
		{Name: "btrfs", Want: "btrfs", size: 128 * mib, tool: []string{"mkfs.btrfs", "-q", "IMAGE"},
			write: Bytes(65600, "_BHRfS_M")},
		{Name: "fat12", Want: "vfat", size: 2 * mib, tool: []string{"mkfs.vfat", "-F", "12", "IMAGE"},
			write: Bytes(54, "FAT12   ", 510, "\x55\xaa")},
		{Name: "fat16", Want: "vfat", tool: []string{"mkfs.vfat", "-F", "16", "IMAGE"},
			write: Bytes(54, "FAT16   ", 510, "\x55\xaa")},
		{Name: "fat32", Want: "vfat", size: 64 * mib, tool: []string{"mkfs.vfat", "-F", "32", "IMAGE"},
			write: Bytes(82, "FAT32   ", 510, "\x55\xaa")},
		{Name: "exfat", Want: "exfat", tool: []string{"mkfs.exfat", "IMAGE"}, write: Bytes(3, "EXFAT   ", 510, "\x55\xaa")},
		{Name: "ntfs", Want: "ntfs", tool: []string{"mkntfs", "-Q", "-F", "IMAGE"},
			write: Bytes(3, "NTFS    ", 510, "\x55\xaa")},
		{Name: "bitlocker", Want: "BitLocker", write: Bytes(0, "\xeb\x58\x90-FVE-FS-")},
		{Name: "refs", Want: "ReFS", write: Bytes(0, "\x00\x00\x00ReFS\x00\x00\x00\x00")},
		{Name: "swap", Want: "swap", tool: []string{"mkswap", "IMAGE"}, write: Bytes(4086, "SWAPSPACE2")},
		{Name: "swap with 64k pages", Want: "swap", tool: []string{"mkswap", "-p", "65536", "IMAGE"},
			write: Bytes(65526, "SWAPSPACE2")},
		{Name: "hibernation image", Want: "swsuspend", write: Bytes(4086, "S1SUSPEND\x00")},
	}
}

// members returns samples of the devices that RAIDs, volume managers and encryption use, and of partition tables.
func members() []Sample {
	return []Sample{
		{Name: "lvm2 pv", Want: "LVM2_member", write: Bytes(512, "LABELONE", 536, "LVM2 001")},
		{Name: "lvm1 pv", Want: "LVM1_member", write: Bytes(0, "HM\x01\x00")},
		{Name: "luks1", Want: "crypto_LUKS", write: Bytes(0, "LUKS\xba\xbe\x00\x01")},
		{Name: "luks2", Want: "crypto_LUKS", size: 32 * mib,
			write: Bytes(0, "LUKS\xba\xbe\x00\x02", 16384, "SKUL\xba\xbe\x00\x02"),
			tool: []string{"sh", "-c",
				"command -v cryptsetup >/dev/null || exit 0; echo secret | cryptsetup luksFormat -q --pbkdf pbkdf2 " +
					"--pbkdf-force-iterations 1000 IMAGE -"}},
		{Name: "luks2, only the second header", Want: "crypto_LUKS", write: Bytes(16384, "SKUL\xba\xbe\x00\x02")},
		{Name: "luks2, second header at 4 MiB", Want: "crypto_LUKS", write: Bytes(4*mib, "SKUL\xba\xbe\x00\x02")},
		{Name: "mdraid 0.90", Want: "linux_raid_member", write: RAID(0, raid09Place)},
		{Name: "mdraid 1.0", Want: "linux_raid_member", write: RAID(1, raid10Place)},
		{Name: "mdraid 1.1", Want: "linux_raid_member", write: RAID(1, at(0))},
		{Name: "mdraid 1.2", Want: "linux_raid_member", write: RAID(1, at(4096))},
		{Name: "zfs, first label", Want: "zfs_member", write: zfs(0)},
		{Name: "zfs, second label", Want: "zfs_member", write: zfs(256 << 10)},
		{Name: "zfs, third label", Want: "zfs_member", write: zfs(-512 << 10)},
		{Name: "zfs, last label", Want: "zfs_member", write: zfs(-256 << 10)},
		{Name: "bcache", Want: "bcache", tool: []string{"make-bcache", "-B", "IMAGE"},
			write: Bytes(4120, "\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81")},
		{Name: "bcachefs", Want: "bcachefs", write: Bytes(4120,
			"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef")},
		{Name: "bluestore", Want: "ceph_bluestore", write: Bytes(0, "bluestore block device\n")},
		{Name: "stratis", Want: "stratis", write: Bytes(516, "!Stra0tis\x86\xff\x02^\x41rh")},
		{Name: "vdo", Want: "VDO", write: Bytes(0, "dmvdo001")},
		{Name: "dm-integrity", Want: "DM_integrity", write: Bytes(0, "integrt\x00")},
		{Name: "dm-verity", Want: "DM_verity_hash", write: Bytes(0, "verity\x00\x00")},
		{Name: "oracleasm", Want: "oracleasm", write: Bytes(32, "ORCLDISK")},
		{Name: "drbd 8", Want: "drbd", write: Bytes(-4096+60, "\x83\x74\x02\x6b")},
		{Name: "drbd 9", Want: "drbd", write: Bytes(-4096+60, "\x83\x74\x02\x6d")},
		{Name: "ddf", Want: "ddf_raid_member", write: Bytes(-512, "\xde\x11\xde\x11")},
		{Name: "intel matrix raid", Want: "isw_raid_member", write: Bytes(-1024, "Intel Raid ISM Cfg Sig. ")},
		{Name: "promise", Want: "promise_fasttrack_raid_member", write: Bytes(-63*512, "Promise Technology, Inc.")},
		{Name: "highpoint", Want: "hpt45x_raid_member", write: Bytes(-11*512, "\xf3\x16\x78\x5a")},
		{Name: "gpt", Want: "gpt", write: Bytes(512, "EFI PART", 510, "\x55\xaa", 450, "\xee"),
			tool: []string{"sh", "-c", "command -v sgdisk >/dev/null || exit 0; sgdisk -n 1:0:0 IMAGE"}},
		{Name: "gpt, only the second", Want: "gpt", write: Bytes(-512, "EFI PART")},
		{Name: "gpt with 4k sectors", Want: "gpt", write: Bytes(4096, "EFI PART")},
		{Name: "mbr", Want: "dos", write: Bytes(446, "\x80\x00\x01\x00\x83", 510, "\x55\xaa"),
			tool: []string{"sh", "-c", "command -v sfdisk >/dev/null || exit 0; echo ,,83 | sfdisk -q IMAGE"}},
		{Name: "mbr without partitions", Want: Unknown, write: Bytes(510, "\x55\xaa")},
	}
}

// others returns samples of rare filesystems, and of unknown data.
func others() []Sample {
	return []Sample{
		{Name: "iso9660", Want: "iso9660", write: Bytes(32769, "CD001")},
		{Name: "udf", Want: "udf", write: Bytes(32769, "BEA01", 34817, "NSR03"), tool: []string{"mkudffs", "IMAGE"}},
		{Name: "squashfs", Want: "squashfs", write: Bytes(0, "hsqs"),
			tool: []string{"sh", "-c",
				"command -v mksquashfs >/dev/null || exit 0; mksquashfs /etc/apt IMAGE -noappend -quiet -no-progress"}},
		{Name: "f2fs", Want: "f2fs", size: 64 * mib, tool: []string{"mkfs.f2fs", "-q", "IMAGE"},
			write: Bytes(1024, "\x10\x20\xf5\xf2")},
		{Name: "erofs", Want: "erofs", write: Bytes(1024, "\xe2\xe1\xf5\xe0"),
			tool: []string{"mkfs.erofs", "--quiet", "IMAGE", "/etc/apt"}},
		{Name: "jfs", Want: "jfs", tool: []string{"mkfs.jfs", "-q", "IMAGE"}, write: Bytes(32768, "JFS1")},
		{Name: "reiserfs", Want: "reiserfs", size: 64 * mib, tool: []string{"mkreiserfs", "-q", "-f", "-f", "IMAGE"},
			write: Bytes(65588, "ReIsEr2Fs")},
		{Name: "nilfs2", Want: "nilfs2", size: 256 * mib, tool: []string{"mkfs.nilfs2", "-q", "IMAGE"},
			write: Bytes(1030, "\x34\x34")},
		{Name: "gfs2", Want: "gfs2", size: 128 * mib, tool: []string{"mkfs.gfs2", "-q", "-O", "-p", "lock_nolock", "-j", "1",
			"IMAGE"}, write: Bytes(65536, "\x01\x16\x19\x70")},
		{Name: "minix", Want: "minix", tool: []string{"mkfs.minix", "IMAGE"}, write: Bytes(1040, "\x8f\x13")},
		{Name: "minix 3", Want: "minix", tool: []string{"mkfs.minix", "-3", "IMAGE"}, write: Bytes(1048, "\x5a\x4d")},
		{Name: "cramfs", Want: "cramfs", write: Bytes(0, "\x45\x3d\xcd\x28")},
		{Name: "bfs", Want: "bfs", tool: []string{"mkfs.bfs", "IMAGE"}, write: Bytes(0, "\xce\xfa\xad\x1b")},
		{Name: "hfs plus", Want: "hfsplus", write: Bytes(1024, "H+\x00\x04")},
		{Name: "apfs", Want: "apfs", write: Bytes(32, "NXSB")},
		{Name: "ocfs2", Want: "ocfs2", write: Bytes(8192, "OCFSV2")},
		{Name: "vmfs", Want: "VMFS_volume_member", write: Bytes(1*mib, "\x0d\xd0\x01\xc0")},
		{Name: "one byte at the start", Want: Unknown, write: Bytes(0, "\x01")},
		{Name: "one byte at the end", Want: Unknown, write: Bytes(-1, "\x01")},
		{Name: "one byte deep in the head", Want: Unknown, write: Bytes(headArea-1, "\x01")},
		{Name: "one byte at the start of the tail", Want: Unknown, write: Bytes(-tailArea, "\x01")},
		{Name: "text", Want: Unknown, write: Bytes(700, "a letter to somebody")},
	}
}

package samples

import (
	"fmt"
	"strings"
)

const gib = 1 << 30

// Remnants returns devices that lost their beginning: the signatures are gone, and the data is still there. All of them
// are Unknown.
func Remnants() []Sample {
	return []Sample{
		remnant("ext4, the first MiB zeroed", gib, "mkfs.ext4 -q IMAGE", zeroed("1M")),
		remnant("ext4, the first 5 MiB zeroed", gib, "mkfs.ext4 -q IMAGE", zeroed("5M")),
		remnant("ext4 with 1k blocks, the first 5 MiB zeroed", gib, "mkfs.ext4 -q -b 1024 IMAGE", zeroed("5M")),
		remnant("ext4 with 2k blocks, the first 5 MiB zeroed", gib, "mkfs.ext4 -q -b 2048 IMAGE", zeroed("5M")),
		remnant("ext4 without a second superblock, the first 5 MiB zeroed", 100*mib, "mkfs.ext4 -q -b 4096 IMAGE",
			zeroed("5M")),
		remnant("ext4 of 1 TiB, the first GiB zeroed", 1024*gib, "mkfs.ext4 -q -E nodiscard IMAGE", zeroed("1G")),
		remnant("xfs, the first 5 MiB zeroed", 300*mib, "mkfs.xfs -q IMAGE", zeroed("5M")),
		remnant("xfs of an odd size, the first 5 MiB zeroed", 7*gib+12*mib+8192, "mkfs.xfs -q IMAGE", zeroed("5M")),
		remnant("xfs of 1 TiB, the first GiB zeroed", 1024*gib, "mkfs.xfs -q -K IMAGE", zeroed("1G")),
		remnant("btrfs, the first 5 MiB zeroed", 300*mib, "mkfs.btrfs -q IMAGE", zeroed("5M")),
		remnant("btrfs of 1 TiB, the first GiB zeroed", 1024*gib, "mkfs.btrfs -q -K IMAGE", zeroed("1G")),
		remnant("zeros to 5 MiB and data after", gib, "printf data | dd of=IMAGE bs=1M seek=5 conv=notrunc status=none"),
		remnant("zeros to 16 MiB and data after, as LUKS2 has it", gib,
			"head -c 1M /dev/urandom | dd of=IMAGE bs=1M seek=16 conv=notrunc status=none"),
		partition("ext4", 8, "mkfs.ext4 -q"), partition("xfs", 8, "mkfs.xfs -q"), partition("btrfs", 8, "mkfs.btrfs -q"),
		partition("ext4", 1, "mkfs.ext4 -q"), partition("xfs", 1, "mkfs.xfs -q"), partition("btrfs", 1, "mkfs.btrfs -q"),
	}
}

// remnant returns a sample that the shell commands create in order.
func remnant(name string, size int64, commands ...string) Sample {
	return Sample{Name: name, Want: Unknown, size: size, tool: script(commands...)}
}

// partition returns a device with a wiped GPT, whose only partition lost its beginning. The partition starts at the
// given MiB.
func partition(fsType string, start int, mkfs string) Sample {
	return remnant(fmt.Sprintf("a wiped GPT with an %s at %d MiB", fsType, start), gib,
		fmt.Sprintf("printf 'label: gpt\nstart=%dM\n' | sfdisk -q IMAGE", start),
		"truncate -s $(($(sfdisk -d IMAGE | sed -n 's/.*size= *\\([0-9]*\\),.*/\\1/p') * 512)) IMAGE.part && "+
			mkfs+" IMAGE.part",
		fmt.Sprintf("dd if=IMAGE.part of=IMAGE bs=1M seek=%d conv=notrunc,sparse status=none && rm IMAGE.part", start),
		fmt.Sprintf("fallocate --punch-hole --offset %d --length 1M IMAGE", gib-mib), zeroed("5M"))
}

// zeroed returns the command that zeroes the beginning of the image.
func zeroed(length string) string { return "fallocate --punch-hole --length " + length + " IMAGE" }

// Owned returns devices with a superblock of a filesystem and, beside it, the signature of another user of the device.
func Owned() []Sample {
	// sgdisk waits for a second each time, and is used only for tables that sfdisk cannot create.
	table := func(label string) string {
		return "printf 'label: " + label + "\nstart=8M, size=64M\n' | sfdisk -q -f --wipe never IMAGE"
	}
	list := []Sample{
		{Name: "ext4 beside an MBR", Want: "ext4,dos", tool: script("mkfs.ext4 -q IMAGE", table("dos"))},
		{Name: "xfs beside an MBR", Want: "xfs,dos", size: 300 * mib,
			tool: script("mkfs.xfs -q IMAGE", table("dos"))},
		{Name: "btrfs beside an MBR", Want: "btrfs,dos", size: 300 * mib,
			tool: script("mkfs.btrfs -q IMAGE", table("dos"))},
		{Name: "xfs beside a GPT", Want: "xfs,gpt", size: 300 * mib,
			tool: script("mkfs.xfs -q IMAGE", table("gpt"))},
		{Name: "btrfs beside a GPT", Want: "btrfs,gpt", size: 300 * mib, tool: script("mkfs.btrfs -q IMAGE", table("gpt"))},
		{Name: "ext4 beside a GPT whose table was moved", Want: "ext4,gpt", size: 300 * mib,
			tool: script("sgdisk -j 4096 -n 1:8M:+64M IMAGE >/dev/null", "mkfs.ext4 -q IMAGE.part 300M",
				"dd if=IMAGE.part of=IMAGE bs=1k skip=1 seek=1 count=1 conv=notrunc status=none && rm IMAGE.part")},
	}
	for _, s := range list {
		if strings.Contains(s.Want, "gpt") {
			s.Name, s.over = s.Name+", without its sums", Bytes(512+16, "\x01\x02\x03\x04", -512+16, "\x01\x02\x03\x04")
			list = append(list, s)
		}
	}
	for i := range list {
		if list[i].size == 0 {
			list[i].size = 100 * mib
		}
	}
	for _, fsType := range []string{"ext4", "xfs", "btrfs"} {
		mkfs := script("mkfs." + fsType + " -q IMAGE")
		list = append(list,
			Sample{Name: fsType + " beside an mdraid 1.0", Want: "linux_raid_member", size: 300 * mib, tool: mkfs,
				over: summedRAID(1, raid10Place)},
			Sample{Name: fsType + " beside an mdraid 0.90", Want: "linux_raid_member", size: 300 * mib, tool: mkfs,
				over: summedRAID(0, raid09Place)},
			Sample{Name: fsType + " beside a VMFS", Want: "VMFS_volume_member", size: 300 * mib, tool: mkfs,
				over: Bytes(1*mib, "\x0d\xd0\x01\xc0", 2*mib, "\x5e\xf1\xab\x2f")},
			Sample{Name: fsType + " beside a ZFS", Want: "zfs_member", size: 300 * mib, tool: mkfs,
				over: Bytes(16<<10, "\x01\x01\x00\x00\x00\x00\x00\x00"+
					"\x00\x00\x00\x01\x00\x00\x00\x24\x00\x00\x00\x20\x00\x00\x00\x07version\x00")},
			Sample{Name: fsType + " beside an mdraid 1.0 without a sum", Want: "linux_raid_member", size: 300 * mib, tool: mkfs,
				over: RAID(1, raid10Place)},
			Sample{Name: fsType + " beside an mdraid 0.90 without a sum", Want: "linux_raid_member", size: 300 * mib, tool: mkfs,
				over: RAID(0, raid09Place)},
			Sample{Name: fsType + " beside what protects a GPT", Want: fsType + ",gpt", size: 300 * mib, tool: mkfs,
				over: Bytes(447, "\x00\x02\x00\xee\xff\xff\xff\x01", 510, "\x55\xaa")},
			Sample{Name: fsType + " beside the second GPT only", Want: fsType + ",gpt", size: 300 * mib,
				tool: script(table("gpt"), "tail -c 17k IMAGE >IMAGE.end", "truncate -s 0 IMAGE", "truncate -s 300M IMAGE",
					"mkfs."+fsType+" -q IMAGE",
					"dd if=IMAGE.end of=IMAGE bs=1k seek=$((300 * 1024 - 17)) conv=notrunc status=none", "rm IMAGE.end")},
			Sample{Name: fsType + " beside a DRBD", Want: "drbd", size: 300 * mib, tool: mkfs,
				over: Bytes(-4096+60, "\x83\x74\x02\x6d")},
			Sample{Name: fsType + " beside a DDF", Want: "ddf_raid_member", size: 300 * mib, tool: mkfs,
				over: Bytes(-512, "\xde\x11\xde\x11")},
			Sample{Name: fsType + " beside an Intel RAID", Want: "isw_raid_member", size: 300 * mib, tool: mkfs,
				over: Bytes(-1024, "Intel Raid ISM Cfg Sig. ")},
			Sample{Name: fsType + " beside a dm-integrity", Want: "DM_integrity", size: 300 * mib, tool: mkfs,
				over: Bytes(0, "integrt\x00")},
			Sample{Name: fsType + " beside a bcache", Want: "bcache", size: 300 * mib, tool: mkfs,
				over: Bytes(4096+24, "\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81")},
			Sample{Name: fsType + " beside a second LUKS2 header", Want: "crypto_LUKS", size: 300 * mib, tool: mkfs,
				over: Bytes(16<<10, "SKUL\xba\xbe\x00\x02", 16<<10+256, "\x00\x00\x00\x00\x00\x00\x40\x00")},
			Sample{Name: fsType + " beside an LVM", Want: "LVM2_member", size: 300 * mib, tool: mkfs,
				over: Bytes(512, "LABELONE", 536, "LVM2 001")},
		)
	}
	return list
}

// script runs commands in a shell, which stops at the first failure.
func script(commands ...string) []string {
	return []string{"sh", "-ec", strings.Join(commands, "\n")}
}

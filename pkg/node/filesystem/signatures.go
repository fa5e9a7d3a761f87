package filesystem

// signature is one way to recognise something. The lists below follow libblkid (util-linux, libblkid/src/superblocks
// and libblkid/src/partitions).
type signature struct {
	name    string
	rank    rank
	offsets []int64                // of the structure, in bytes; from the end when negative
	place   func(size int64) int64 // instead of offsets, if it depends on the device's size
	magic   string
	at      int64 // of the magic, within the structure
	// read, if set, is called instead of checking the magic.
	read func(w *window, offset int64) (Found, bool)
	// owns, if set, reports whether a recognised structure is complete and in use.
	owns func(w *window, offset int64) bool
}

// places returns the signature's offsets on a device of the size, negative if the device is too small.
func (s signature) places(size int64) []int64 {
	if s.place != nil {
		return []int64{s.place(size)}
	}
	places := make([]int64, len(s.offsets))
	for i, offset := range s.offsets {
		places[i] = offset
		if offset < 0 {
			places[i] += size
		}
	}
	return places
}

// look tries the signature at one of its places. A small device does not have all of them.
func (s signature) look(w *window, offset int64) (match, bool) {
	if offset < 0 {
		return match{}, false
	}
	found, ok := Found{Type: s.name}, false
	if s.read != nil {
		found, ok = s.read(w, offset)
	} else {
		ok = w.has(offset+s.at, s.magic)
	}
	m := match{Found: found, rank: s.rank, offset: offset}
	if ok && s.owns != nil {
		m.owner = s.owns(w, offset)
	}
	return m, ok
}

// magic returns a signature of fixed bytes at a fixed place.
func magic(rank rank, name string, at int64, bytes string, offsets ...int64) signature {
	if len(offsets) == 0 {
		offsets = []int64{0}
	}
	return signature{name: name, rank: rank, at: at, magic: bytes, offsets: offsets}
}

// signatures returns the signatures in the part of a device that every probe reads.
func signatures() []signature {
	var all []signature
	all = append(all, mountable()...)
	all = append(all, members()...)
	all = append(all, raids()...)
	all = append(all, filesystems()...)
	return append(all, tables()...)
}

// mountable returns the filesystems that this driver creates.
func mountable() []signature {
	return []signature{
		{rank: filesystem, offsets: []int64{extOffset}, read: readExt},
		{rank: filesystem, offsets: []int64{0}, read: readXFS},
		{rank: filesystem, offsets: []int64{btrfsOffset}, read: readBtrfs},
	}
}

// members returns parts of something larger: volume managers, encryption, caches.
func members() []signature {
	return []signature{
		{name: "LVM2_member", rank: container, offsets: []int64{0, 512, 1024, 1536}, read: readLVM},
		magic(container, "LVM1_member", 0, "HM\x01\x00"), magic(container, "LVM1_member", 0, "HM\x02\x00"),
		magic(container, "crypto_LUKS", 0, "LUKS\xba\xbe"),
		{rank: container, offsets: []int64{16 << 10, 32 << 10, 64 << 10}, read: readLUKS2, owns: always},
		magic(container, "BitLocker", 3, "-FVE-FS-"),
		magic(container, "bcache", 24, "\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81", 4096),
		magic(container, "bcachefs", 24, "\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef", 4096),
		magic(container, "ceph_bluestore", 0, "bluestore block device"),
		magic(container, "stratis", 4, "!Stra0tis\x86\xff\x02^\x41rh", 512, 9*512),
		magic(container, "VDO", 0, "dmvdo001"),
		magic(container, "DM_verity_hash", 0, "verity\x00\x00"),
		magic(container, "DM_integrity", 0, "integrt\x00"),
		magic(container, "DM_snapshot_cow", 0, "SnAp"),
		magic(container, "oracleasm", 32, "ORCLDISK"),
		magic(container, "drbd", 60, "\x83\x74\x02\x6b", -4096),
		magic(container, "drbd", 60, "\x83\x74\x02\x6c", -4096),
		magic(container, "drbd", 60, "\x83\x74\x02\x6d", -4096),
		{name: "zfs_member", rank: container, offsets: []int64{0}, read: readZFSConfig},
		{name: "VMFS_volume_member", rank: container, offsets: []int64{vmfsVolume}, magic: "\x0d\xd0\x01\xc0", owns: always},
		{name: "VMFS", rank: filesystem, offsets: []int64{vmfsFilesystem}, magic: "\x5e\xf1\xab\x2f", owns: always},
		magic(container, "ubi", 0, "UBI#"),
		magic(container, "qcow2", 0, "QFI\xfb"),
	}
}

// raids returns superblocks of software and firmware RAID, most of them at the end of the device.
func raids() []signature {
	return []signature{
		{rank: container, offsets: []int64{0, 4096}, read: readRAID1},
		{rank: container, place: raid10Place, read: readRAID1},
		{rank: container, place: raid09Place, read: readRAID09},
		magic(container, "ddf_raid_member", 0, "\xde\x11\xde\x11", -512, -131072-512),
		magic(container, "isw_raid_member", 0, "Intel Raid ISM Cfg Sig. ", -1024, -8192),
		magic(container, "lsi_mega_raid_member", 0, "$XIDE$", -512),
		magic(container, "nvidia_raid_member", 0, "NVIDIA", -1024),
		magic(container, "promise_fasttrack_raid_member", 0, "Promise Technology, Inc.", -63*512, -255*512, -256*512, -16*512,
			-399*512),
		magic(container, "hpt45x_raid_member", 0, "\xf3\x16\x78\x5a", -11*512),
		magic(container, "hpt37x_raid_member", 32, "\xf0\x16\x78\x5a", 9*512),
		magic(container, "adaptec_raid_member", 0, "\x44\x50\x54\x4d", -512),
	}
}

// filesystems returns the filesystems that this driver does not create, and swap space.
func filesystems() []signature {
	return []signature{
		{rank: filesystem, offsets: []int64{0}, read: readFAT},
		magic(filesystem, "exfat", 3, "EXFAT   "),
		magic(filesystem, "ntfs", 3, "NTFS    "),
		magic(filesystem, "ReFS", 3, "ReFS\x00\x00\x00\x00"),
		{rank: filesystem, offsets: []int64{4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10}, read: readSwap},
		magic(filesystem, "iso9660", 1, "CD001", 32<<10), magic(filesystem, "iso9660", 9, "CDROM", 32<<10),
		{name: "udf", rank: filesystem, offsets: []int64{32 << 10}, read: readUDF},
		magic(filesystem, "squashfs", 0, "hsqs"), magic(filesystem, "squashfs", 0, "sqsh"),
		magic(filesystem, "f2fs", 0, "\x10\x20\xf5\xf2", 1024), magic(filesystem, "f2fs", 0, "\x10\x20\xf5\xf2", 5120),
		magic(filesystem, "erofs", 0, "\xe2\xe1\xf5\xe0", 1024),
		magic(filesystem, "jfs", 0, "JFS1", 32<<10),
		magic(filesystem, "reiserfs", 52, "ReIsErFs", 8<<10), magic(filesystem, "reiserfs", 52, "ReIsEr2Fs", 64<<10),
		magic(filesystem, "reiserfs", 52, "ReIsEr3Fs", 64<<10), magic(filesystem, "reiser4", 0, "ReIsEr4", 64<<10),
		magic(filesystem, "hfsplus", 0, "H+\x00\x04", 1024), magic(filesystem, "hfsplus", 0, "HX\x00\x05", 1024),
		magic(filesystem, "apfs", 32, "NXSB"),
		magic(filesystem, "ufs", 1372, "\x54\x19\x01\x00", 8<<10, 64<<10),
		magic(filesystem, "ufs", 1372, "\x19\x01\x54\x19", 8<<10, 64<<10),
		magic(filesystem, "ocfs2", 0, "OCFSV2", 1024, 2048, 4096, 8192),
		magic(filesystem, "gfs2", 0, "\x01\x16\x19\x70", 64<<10),
		magic(filesystem, "hpfs", 0, "\x49\xe8\x95\xf9", 8<<10),
		magic(filesystem, "cramfs", 0, "\x45\x3d\xcd\x28"), magic(filesystem, "romfs", 0, "-rom1fs-"),
		magic(filesystem, "ubifs", 0, "\x31\x18\x10\x06"), magic(filesystem, "zonefs", 0, "SFOZ"),
		magic(filesystem, "befs", 32, "1SFB", 0, 512), magic(filesystem, "bfs", 0, "\xce\xfa\xad\x1b"),
		magic(filesystem, "xfs_external_log", 0, "\xfe\xed\xba\xbe", 0, 512),
	}
}

// tables returns partition tables and disk labels.
func tables() []signature {
	return []signature{
		{name: "gpt", rank: partitions, offsets: []int64{512, -512}, magic: gptMagic, owns: gptSeen(512)},
		{name: "gpt", rank: partitions, offsets: []int64{4096, -4096}, magic: gptMagic, owns: gptSeen(4096)},
		{name: "gpt", rank: partitions, offsets: []int64{0}, read: readProtective, owns: always},
		{name: "dos", rank: partitions, offsets: []int64{0}, read: readMBR, owns: mbrInUse},
		magic(partitions, "bsd", 0, "\x57\x45\x56\x82", 512, 64),
		magic(partitions, "sun", 508, "\xda\xbe"),
		magic(partitions, "sgi", 0, "\x0b\xe5\xa9\x41"),
	}
}

// lateSignatures are checked if none of the others is found: second copies of headers, signatures beyond the part that
// every probe reads, and magics of two bytes, which occur by chance in other superblocks.
func lateSignatures() []signature {
	return []signature{
		{name: "zfs_member", rank: container, offsets: []int64{0, 256 << 10, -512 << 10, -256 << 10}, read: readZFS},
		magic(container, "crypto_LUKS", 0, "SKUL\xba\xbe",
			16<<10, 32<<10, 64<<10, 128<<10, 256<<10, 512<<10, 1<<20, 2<<20, 4<<20),
		magic(filesystem, "nilfs2", 6, "\x34\x34", 1024, -4096),
		magic(filesystem, "hfs", 0, "BD", 1024),
		magic(partitions, "mac", 0, "ER"), magic(partitions, "mac", 0, "PM\x00\x00", 512),
		magic(filesystem, "minix", 16, "\x7f\x13", 1024), magic(filesystem, "minix", 16, "\x8f\x13", 1024),
		magic(filesystem, "minix", 16, "\x68\x24", 1024), magic(filesystem, "minix", 16, "\x78\x24", 1024),
		magic(filesystem, "minix", 24, "\x5a\x4d", 1024),
	}
}

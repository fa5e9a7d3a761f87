package filesystem

import (
	"encoding/binary"
	"os"
	"strings"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// sample is something that a device can hold.
type sample struct {
	name string
	want string
	size int64 // 0 for 16 MiB
	// tool makes it, IMAGE standing for the file. Where the tool is missing, write makes what counts.
	tool  []string
	write func(t *testing.T, f *os.File, size int64)
}

// bytesAt writes fixed bytes at fixed places; places below zero count from the end.
func bytesAt(pairs ...any) func(*testing.T, *os.File, int64) {
	return func(t *testing.T, f *os.File, size int64) {
		for i := 0; i < len(pairs); i += 2 {
			offset := int64(pairs[i].(int))
			if offset < 0 {
				offset += size
			}
			put(t, f, offset, pairs[i+1].(string))
		}
	}
}

func raid(version uint32, place func(size int64) int64) func(*testing.T, *os.File, int64) {
	return func(t *testing.T, f *os.File, size int64) {
		b := make([]byte, 256)
		binary.LittleEndian.PutUint32(b, raidNumber)
		binary.LittleEndian.PutUint32(b[4:], version)
		binary.LittleEndian.PutUint64(b[144:], uint64(place(size)/512))
		put(t, f, place(size), string(b))
	}
}

func at(offset int64) func(int64) int64 { return func(int64) int64 { return offset } }

func zfs(offset int64) func(*testing.T, *os.File, int64) {
	return func(t *testing.T, f *os.File, size int64) {
		place := offset
		if place < 0 {
			place += size
		}
		for i := range int64(4) {
			put(t, f, place+128<<10+i<<10, "\x0c\xb1\xba\x00\x00\x00\x00\x00")
		}
	}
}

func samples() []sample {
	return []sample{
		{name: "ext2", want: "ext2", tool: []string{"mkfs.ext2", "-q", "IMAGE"}},
		{name: "ext3", want: "ext3", tool: []string{"mkfs.ext3", "-q", "IMAGE"}},
		{name: "ext4", want: "ext4", tool: []string{"mkfs.ext4", "-q", "IMAGE"}},
		{name: "ext4 without journal", want: "ext4", tool: []string{"mkfs.ext4", "-q", "-O", "^has_journal", "IMAGE"}},
		{name: "ext4 with 1k blocks", want: "ext4", tool: []string{"mkfs.ext4", "-q", "-b", "1024", "IMAGE"}},
		{name: "external journal", want: "jbd", tool: []string{"mkfs.ext4", "-q", "-O", "journal_dev", "IMAGE"}},
		{name: "xfs", want: "xfs", size: 300 * mib, tool: []string{"mkfs.xfs", "-q", "IMAGE"}, write: bytesAt(0, "XFSB")},
		{name: "btrfs", want: "btrfs", size: 128 * mib, tool: []string{"mkfs.btrfs", "-q", "IMAGE"}, write: bytesAt(65600, "_BHRfS_M")},
		{name: "fat12", want: "vfat", size: 2 * mib, tool: []string{"mkfs.vfat", "-F", "12", "IMAGE"}, write: bytesAt(54, "FAT12   ", 510, "\x55\xaa")},
		{name: "fat16", want: "vfat", tool: []string{"mkfs.vfat", "-F", "16", "IMAGE"}, write: bytesAt(54, "FAT16   ", 510, "\x55\xaa")},
		{name: "fat32", want: "vfat", size: 64 * mib, tool: []string{"mkfs.vfat", "-F", "32", "IMAGE"}, write: bytesAt(82, "FAT32   ", 510, "\x55\xaa")},
		{name: "exfat", want: "exfat", tool: []string{"mkfs.exfat", "IMAGE"}, write: bytesAt(3, "EXFAT   ", 510, "\x55\xaa")},
		{name: "ntfs", want: "ntfs", tool: []string{"mkntfs", "-Q", "-F", "IMAGE"}, write: bytesAt(3, "NTFS    ", 510, "\x55\xaa")},
		{name: "bitlocker", want: "BitLocker", write: bytesAt(0, "\xeb\x58\x90-FVE-FS-")},
		{name: "refs", want: "ReFS", write: bytesAt(0, "\x00\x00\x00ReFS\x00\x00\x00\x00")},
		{name: "swap", want: "swap", tool: []string{"mkswap", "IMAGE"}, write: bytesAt(4086, "SWAPSPACE2")},
		{name: "swap with 64k pages", want: "swap", tool: []string{"mkswap", "-p", "65536", "IMAGE"}, write: bytesAt(65526, "SWAPSPACE2")},
		{name: "hibernation image", want: "swsuspend", write: bytesAt(4086, "S1SUSPEND\x00")},
		{name: "lvm2 pv", want: "LVM2_member", write: bytesAt(512, "LABELONE", 536, "LVM2 001")},
		{name: "lvm1 pv", want: "LVM1_member", write: bytesAt(0, "HM\x01\x00")},
		{name: "luks1", want: "crypto_LUKS", write: bytesAt(0, "LUKS\xba\xbe\x00\x01")},
		{name: "luks2", want: "crypto_LUKS", size: 32 * mib, write: bytesAt(0, "LUKS\xba\xbe\x00\x02", 16384, "SKUL\xba\xbe\x00\x02"),
			tool: []string{"sh", "-c", "command -v cryptsetup >/dev/null || exit 0; echo secret | cryptsetup luksFormat -q --pbkdf pbkdf2 --pbkdf-force-iterations 1000 IMAGE -"}},
		{name: "luks2, only the second header", want: "crypto_LUKS", write: bytesAt(16384, "SKUL\xba\xbe\x00\x02")},
		{name: "luks2, second header at 4 MiB", want: "crypto_LUKS", write: bytesAt(4*mib, "SKUL\xba\xbe\x00\x02")},
		{name: "mdraid 0.90", want: "linux_raid_member", write: raid(0, raid09Place)},
		{name: "mdraid 1.0", want: "linux_raid_member", write: raid(1, raid10Place)},
		{name: "mdraid 1.1", want: "linux_raid_member", write: raid(1, at(0))},
		{name: "mdraid 1.2", want: "linux_raid_member", write: raid(1, at(4096))},
		{name: "zfs, first label", want: "zfs_member", write: zfs(0)},
		{name: "zfs, second label", want: "zfs_member", write: zfs(256 << 10)},
		{name: "zfs, third label", want: "zfs_member", write: zfs(-512 << 10)},
		{name: "zfs, last label", want: "zfs_member", write: zfs(-256 << 10)},
		{name: "bcache", want: "bcache", tool: []string{"make-bcache", "-B", "IMAGE"},
			write: bytesAt(4120, "\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81")},
		{name: "bcachefs", want: "bcachefs", write: bytesAt(4120, "\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef")},
		{name: "bluestore", want: "ceph_bluestore", write: bytesAt(0, "bluestore block device\n")},
		{name: "stratis", want: "stratis", write: bytesAt(516, "!Stra0tis\x86\xff\x02^\x41rh")},
		{name: "vdo", want: "VDO", write: bytesAt(0, "dmvdo001")},
		{name: "dm-integrity", want: "DM_integrity", write: bytesAt(0, "integrt\x00")},
		{name: "dm-verity", want: "DM_verity_hash", write: bytesAt(0, "verity\x00\x00")},
		{name: "oracleasm", want: "oracleasm", write: bytesAt(32, "ORCLDISK")},
		{name: "drbd 8", want: "drbd", write: bytesAt(-4096+60, "\x83\x74\x02\x6b")},
		{name: "drbd 9", want: "drbd", write: bytesAt(-4096+60, "\x83\x74\x02\x6d")},
		{name: "ddf", want: "ddf_raid_member", write: bytesAt(-512, "\xde\x11\xde\x11")},
		{name: "intel matrix raid", want: "isw_raid_member", write: bytesAt(-1024, "Intel Raid ISM Cfg Sig. ")},
		{name: "promise", want: "promise_fasttrack_raid_member", write: bytesAt(-63*512, "Promise Technology, Inc.")},
		{name: "highpoint", want: "hpt45x_raid_member", write: bytesAt(-11*512, "\xf3\x16\x78\x5a")},
		{name: "gpt", want: "gpt", write: bytesAt(512, "EFI PART", 510, "\x55\xaa", 450, "\xee"),
			tool: []string{"sh", "-c", "command -v sgdisk >/dev/null || exit 0; sgdisk -n 1:0:0 IMAGE"}},
		{name: "gpt, only the second", want: "gpt", write: bytesAt(-512, "EFI PART")},
		{name: "gpt with 4k sectors", want: "gpt", write: bytesAt(4096, "EFI PART")},
		{name: "mbr", want: "dos", write: bytesAt(446, "\x80\x00\x01\x00\x83", 510, "\x55\xaa"),
			tool: []string{"sh", "-c", "command -v sfdisk >/dev/null || exit 0; echo ,,83 | sfdisk -q IMAGE"}},
		{name: "mbr without partitions", want: UnknownData, write: bytesAt(510, "\x55\xaa")},
		{name: "iso9660", want: "iso9660", write: bytesAt(32769, "CD001")},
		{name: "udf", want: "udf", write: bytesAt(32769, "BEA01", 34817, "NSR03"), tool: []string{"mkudffs", "IMAGE"}},
		{name: "squashfs", want: "squashfs", write: bytesAt(0, "hsqs"),
			tool: []string{"sh", "-c", "command -v mksquashfs >/dev/null || exit 0; mksquashfs /etc/apt IMAGE -noappend -quiet -no-progress"}},
		{name: "f2fs", want: "f2fs", size: 64 * mib, tool: []string{"mkfs.f2fs", "-q", "IMAGE"}, write: bytesAt(1024, "\x10\x20\xf5\xf2")},
		{name: "erofs", want: "erofs", write: bytesAt(1024, "\xe2\xe1\xf5\xe0"), tool: []string{"mkfs.erofs", "--quiet", "IMAGE", "/etc/apt"}},
		{name: "jfs", want: "jfs", tool: []string{"mkfs.jfs", "-q", "IMAGE"}, write: bytesAt(32768, "JFS1")},
		{name: "reiserfs", want: "reiserfs", size: 64 * mib, tool: []string{"mkreiserfs", "-q", "-f", "-f", "IMAGE"}, write: bytesAt(65588, "ReIsEr2Fs")},
		{name: "nilfs2", want: "nilfs2", size: 256 * mib, tool: []string{"mkfs.nilfs2", "-q", "IMAGE"}, write: bytesAt(1030, "\x34\x34")},
		{name: "gfs2", want: "gfs2", size: 128 * mib, tool: []string{"mkfs.gfs2", "-q", "-O", "-p", "lock_nolock", "-j", "1", "IMAGE"}, write: bytesAt(65536, "\x01\x16\x19\x70")},
		{name: "minix", want: "minix", tool: []string{"mkfs.minix", "IMAGE"}, write: bytesAt(1040, "\x8f\x13")},
		{name: "minix 3", want: "minix", tool: []string{"mkfs.minix", "-3", "IMAGE"}, write: bytesAt(1048, "\x5a\x4d")},
		{name: "cramfs", want: "cramfs", write: bytesAt(0, "\x45\x3d\xcd\x28")},
		{name: "bfs", want: "bfs", tool: []string{"mkfs.bfs", "IMAGE"}, write: bytesAt(0, "\xce\xfa\xad\x1b")},
		{name: "hfs plus", want: "hfsplus", write: bytesAt(1024, "H+\x00\x04")},
		{name: "apfs", want: "apfs", write: bytesAt(32, "NXSB")},
		{name: "ocfs2", want: "ocfs2", write: bytesAt(8192, "OCFSV2")},
		{name: "vmfs", want: "VMFS_volume_member", write: bytesAt(1*mib, "\x0d\xd0\x01\xc0")},
		{name: "one byte at the start", want: UnknownData, write: bytesAt(0, "\x01")},
		{name: "one byte at the end", want: UnknownData, write: bytesAt(-1, "\x01")},
		{name: "one byte deep in the head", want: UnknownData, write: bytesAt(headArea-1, "\x01")},
		{name: "one byte at the start of the tail", want: UnknownData, write: bytesAt(-tailArea, "\x01")},
		{name: "text", want: UnknownData, write: bytesAt(700, "a letter to somebody")},
	}
}

// make puts the sample into a file of its own: with the tool where it is installed, by hand elsewhere.
func (s sample) make(t *testing.T) *os.File {
	t.Helper()
	size := s.size
	if size == 0 {
		size = 16 * mib
	}
	f := image(t, size)
	if s.tool != nil {
		argv := make([]string, len(s.tool))
		for i, arg := range s.tool {
			argv[i] = strings.ReplaceAll(arg, "IMAGE", f.Name())
		}
		made := tool(t, argv...)
		if err := os.Truncate(f.Name(), size); err != nil { // some tools make the file as small as they can
			t.Fatal(err)
		}
		if made && !probe(t, f).Blank() {
			return f
		}
	}
	if s.write == nil {
		t.Skipf("SKIPPED: %s is not installed", s.tool[0])
	}
	t.Log("made by hand")
	s.write(t, f, size)
	return f
}

// Each kind of thing is recognised, and offering it for formatting changes not one byte of it.
func TestSamplesAreNeverFormatted(t *testing.T) {
	for _, s := range samples() {
		t.Run(s.name, func(t *testing.T) {
			f := s.make(t)
			found := probe(t, f)
			if found.Type != s.want {
				t.Fatalf("found %q, want %q", found.Type, s.want)
			}
			before := sum(t, f)
			d := attach(t, f)
			fsType := "ext4"
			if isExt(s.want) {
				fsType = "btrfs"
			}
			if d.SizeBytes < 109*mib {
				fsType = "ext4"
			}
			for _, resume := range []bool{false, true} {
				if resume && s.want == UnknownData {
					continue // what a cut-short mkfs leaves looks like that
				}
				err := Format(t.Context(), Request{Path: d.Path, Held: d.File, FSType: fsType, Resume: resume && !isExt(s.want)})
				wantKind(t, err, backends.InUse)
				if err != nil && !strings.Contains(err.Error(), s.want) {
					t.Errorf("the error does not name %q: %v", s.want, err)
				}
			}
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
			if sum(t, f) != before {
				t.Error("the device was changed")
			}
		})
	}
}

func TestBlank(t *testing.T) {
	for _, size := range []int64{512, 4096, 100_000, mib, headArea, headArea + tailArea, headArea + tailArea + 1, 64 * mib, 10 << 30} {
		if found := probe(t, image(t, size)); !found.Blank() {
			t.Errorf("a blank device of %d bytes holds %q", size, found.Type)
		}
	}
	// What lies between the areas is nobody's signature.
	f := image(t, 64*mib)
	put(t, f, 32*mib, "old data")
	if found := probe(t, f); !found.Blank() {
		t.Errorf("found %q, want a blank device", found.Type)
	}
}

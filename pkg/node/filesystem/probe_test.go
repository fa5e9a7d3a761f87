package filesystem

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// faulty is a blank device that cannot be read from an offset on.
type faulty struct{ from, size int64 }

func (f faulty) ReadAt(p []byte, offset int64) (int, error) {
	if offset+int64(len(p)) > f.from {
		return 0, unix.EIO
	}
	clear(p)
	return len(p), nil
}

// Wherever a read fails, the result is an error, never blank.
func TestUnreadableIsNeverBlank(t *testing.T) {
	const size = 64 * mib
	for _, from := range []int64{0, 100, 256 << 10, mib, headArea - 1, size - tailArea, size - 1} {
		w := newWindow(faulty{from, size}, size)
		if identify(t.Context(), w); !errors.Is(w.err, unix.EIO) {
			t.Errorf("unreadable from %d on: error %v, want EIO", from, w.err)
		}
	}
}

// A device that is shorter than its given size cannot be read to its end.
func TestShortDeviceIsNeverBlank(t *testing.T) {
	f := image(t, 8*mib)
	_, err := Probe(t.Context(), f, 9*mib)
	wantKind(t, err, backends.Unavailable)
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the cause is %v, want an unexpected end", err)
	}
}

func TestProbeAfterContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Probe(ctx, image(t, mib), mib)
	wantKind(t, err, backends.Unavailable)
}

// A device that never answers delays no caller beyond the deadline.
func TestProbeHangs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	// Stimulus: nobody writes to the other end.
	ctx, cancel := context.WithTimeout(t.Context(), 1)
	defer cancel()
	_, err = Probe(ctx, f, mib)
	wantKind(t, err, backends.Unavailable)
}

func TestSeveralThingsOnOneDevice(t *testing.T) {
	lvm := bytesAt(512, "LABELONE", 536, "LVM2 001")
	for name, test := range map[string]struct {
		size  int64
		tool  []string
		write func(*testing.T, *os.File, int64)
		want  string
	}{
		"ext4 left under mdraid 1.2": {16 * mib, []string{"mkfs.ext4", "-q", "IMAGE"}, raid(1, at(4096)),
			"linux_raid_member"},
		"ext4 in mdraid 1.0": {16 * mib, []string{"mkfs.ext4", "-q", "IMAGE", "15M"}, raid(1, raid10Place),
			"linux_raid_member"},
		"ext4 in mdraid 0.90": {16 * mib, []string{"mkfs.ext4", "-q", "IMAGE", "15M"}, raid(0, raid09Place),
			"linux_raid_member"},
		"ext4 with mdraid bytes at the end": {16 * mib, []string{"mkfs.ext4", "-q", "IMAGE"}, raid(1, raid10Place),
			"linux_raid_member"},
		"ext4 with iso bytes in a file": {16 * mib, []string{"mkfs.ext4", "-q", "IMAGE"}, bytesAt(32769, "CD001"),
			"ext4"},
		"ext4 with a LUKS header in a file": {16 * mib, []string{"mkfs.ext4", "-q", "IMAGE"},
			bytesAt(4*mib, "SKUL\xba\xbe\x00\x02"), "ext4"},
		"ext4 in drbd": {16 * mib, []string{"mkfs.ext4", "-q", "IMAGE", "15M"},
			bytesAt(-4096+60, "\x83\x74\x02\x6b"), "drbd"},
		"ext4 of a larger device": {16 * mib, []string{"mkfs.ext4", "-q", "IMAGE", "32M"}, raid(1, raid10Place),
			"linux_raid_member"},
		"ext4 left under lvm": {16 * mib, []string{"mkfs.ext4", "-q", "IMAGE"}, lvm, "LVM2_member"},
		"ext4 with a boot sector": {16 * mib, []string{"mkfs.ext4", "-q", "IMAGE"},
			bytesAt(446, "\x80\x00\x01\x00\x83", 510, "\x55\xaa"), "ext4"},
		"ext4 with a broken gpt": {16 * mib, []string{"mkfs.ext4", "-q", "IMAGE"},
			bytesAt(512, "EFI PART", -512, "EFI PART"), "ext4,gpt"},
		"btrfs with a broken gpt": {300 * mib, []string{"mkfs.btrfs", "-q", "IMAGE"},
			bytesAt(512, "EFI PART"), "btrfs,gpt"},
		"ext4 with the end of an old gpt": {16 * mib, []string{"mkfs.ext4", "-q", "IMAGE"},
			bytesAt(-512, "EFI PART"), "ext4"},
		"ext4 and btrfs": {16 * mib, []string{"mkfs.ext4", "-q", "IMAGE"}, bytesAt(65600, "_BHRfS_M"),
			"ext4,btrfs"},
		"ext4 whose counters look like minix": {16 * mib, []string{"mkfs.ext4", "-q", "IMAGE"}, bytesAt(1040, "\x8f\x13"),
			"ext4"},
		"xfs with jfs bytes in a file": {300 * mib, []string{"mkfs.xfs", "-q", "IMAGE"}, bytesAt(32768, "JFS1"),
			"xfs"},
		"luks and lvm": {16 * mib, nil,
			func(t *testing.T, f *os.File, size int64) { lvm(t, f, size); put(t, f, 0, "LUKS\xba\xbe") },
			"LVM2_member,crypto_LUKS"},
		"iso with an mbr": {16 * mib, nil,
			bytesAt(32769, "CD001", 446, "\x80\x00\x01\x00\x83", 510, "\x55\xaa"), "iso9660"},
	} {
		t.Run(name, func(t *testing.T) {
			f := image(t, test.size)
			if test.tool != nil {
				argv := strings.Split(strings.ReplaceAll(strings.Join(test.tool, " "), "IMAGE", f.Name()), " ")
				if !tool(t, argv...) {
					t.Skipf("SKIPPED: %s is not installed", argv[0])
				}
			}
			if err := f.Truncate(test.size); err != nil {
				t.Fatal(err)
			}
			test.write(t, f, test.size)
			if found := probe(t, f); found.Type != test.want {
				t.Errorf("found %q, want %q", found.Type, test.want)
			}
		})
	}
}

// The remains that mkfs leaves of earlier contents hide no filesystem.
func TestFormattedOverSomething(t *testing.T) {
	makes := map[string]string{
		"partitions": "sgdisk -n 1:0:0 $0 >/dev/null",
		"LUKS": "! command -v cryptsetup >/dev/null || echo secret | cryptsetup luksFormat -q --luks2-metadata-size 4m " +
			"--luks2-keyslots-size 8m " +
			"--pbkdf pbkdf2 --pbkdf-force-iterations 1000 $0 -",
		"noise": "head -c 128k /dev/urandom | dd of=$0 bs=1k seek=$((300 * 1024 - 128)) conv=notrunc status=none",
	}
	for name, before := range makes {
		for fsType, force := range map[string]string{"ext4": "-F", "xfs": "-f", "btrfs": "-f"} {
			for _, size := range []int64{300 * mib, 300*mib + 1536} {
				t.Run(fmt.Sprintf("%s over %s, %d bytes", fsType, name, size), func(t *testing.T) {
					f := image(t, size)
					if !tool(t, "sh", "-ec", before+"; mkfs."+fsType+" -q "+force+" $0", f.Name()) {
						t.Fatal("there is no shell")
					}
					raid(1, raid10Place)(t, f, size/2) // Anything before the end may belong to a file.
					if found := probe(t, f); found.Type != fsType {
						t.Errorf("found %+v, want %s", found, fsType)
					}
				})
			}
		}
	}
}

func FuzzIdentify(f *testing.F) {
	f.Add([]byte("XFSB"), []byte("EFI PART"), int64(1<<20))
	sb := make([]byte, 2048)
	sb[1024+56], sb[1024+57], sb[1024+24] = 0x53, 0xef, 2
	f.Add(sb, []byte(nil), int64(1<<22))
	f.Fuzz(func(t *testing.T, head, tail []byte, size int64) {
		size = size&(16<<20-1) + int64(len(head)) + int64(len(tail))
		w := newWindow(&ends{head, tail, size}, size)
		found := identify(t.Context(), w)
		if w.err != nil {
			t.Fatalf("reading failed: %v", w.err)
		}
		if found.SizeBytes < 0 {
			t.Errorf("a size of %d bytes", found.SizeBytes)
		}
		empty := len(bytes.Trim(head, "\x00")) == 0 && len(bytes.Trim(tail, "\x00")) == 0
		if covers := int64(len(head)) <= headArea && int64(len(tail)) <= tailArea; covers && found.Blank() != empty {
			t.Errorf("found %q on a device that is empty: %t", found.Type, empty)
		}
		NeedsGrow(found, size)
	})
}

// ends is a device that is zero except at its two ends.
type ends struct {
	head, tail []byte
	size       int64
}

func (e *ends) ReadAt(p []byte, offset int64) (int, error) {
	if offset >= e.size {
		return 0, io.EOF
	}
	n := int(min(int64(len(p)), e.size-offset))
	clear(p[:n])
	if offset < int64(len(e.head)) {
		copy(p[:n], e.head[offset:])
	}
	start := e.size - int64(len(e.tail))
	if end := offset + int64(n); end > start {
		from := max(start, offset)
		copy(p[from-offset:n], e.tail[from-start:])
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// counted is a blank device that counts its reads.
type counted struct {
	faulty
	reads int
}

func (c *counted) ReadAt(p []byte, offset int64) (int, error) {
	c.reads++
	return c.faulty.ReadAt(p, offset)
}

// The extents that every probe inspects are read at once: no signature of the first list, nor the mark, costs another
// wait.
func TestSignaturesAreReadAtOnce(t *testing.T) {
	for _, size := range []int64{mib, 20 * mib, 64 * mib, 64*mib + 512, 1024 * mib, 10240*mib + 61440} {
		c := &counted{faulty: faulty{size, size}}
		w := newWindow(c, size)
		c.reads = 0
		search(w, signatures())
		w.mark()
		if c.reads != 0 || w.err != nil {
			t.Errorf("%d bytes: %d reads that were not foreseen, error %v", size, c.reads, w.err)
		}
	}
}

// The extents that Probe inspects are in memory soon after Announce, without a read.
func TestAnnounce(t *testing.T) {
	d := attach(t, image(t, 64*mib))
	for _, e := range lookedAt(d.SizeBytes) {
		// udev may also read a new device.
		eventually(t, fmt.Sprintf("%+v is out of memory", e), func() bool {
			return unix.IoctlSetInt(int(d.File.Fd()), unix.BLKFLSBUF, 0) == nil && !cached(t, d.File, e)
		})
	}
	for _, e := range lookedAt(d.SizeBytes) {
		// The kernel is asked again: under memory pressure it may drop what it was to read, or has read.
		eventually(t, fmt.Sprintf("%+v is in memory", e), func() bool {
			Announce(d.File, d.SizeBytes)
			return cached(t, d.File, e)
		})
	}
}

// cached reports whether an extent of whole pages is in memory (mincore(2)). Reading it would bring it there.
func cached(t *testing.T, dev *os.File, e extent) bool {
	t.Helper()
	pages, err := unix.Mmap(int(dev.Fd()), e.offset, int(e.length), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(pages) }()
	resident := make([]byte, (len(pages)+os.Getpagesize()-1)/os.Getpagesize())
	_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&pages[0])), uintptr(len(pages)),
		uintptr(unsafe.Pointer(&resident[0])))
	if errno != 0 {
		t.Fatal(errno)
	}
	return !slices.ContainsFunc(resident, func(page byte) bool { return page&1 == 0 })
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !holds(); <-time.After(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it never came to be that %s", what)
		}
	}
}

package node_test

import (
	"encoding/binary"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node/filesystem"
)

// overwrite writes meaningless bytes to an image.
func (w *world) overwrite(image string, offset int64, length int) {
	w.Helper()
	file, err := os.OpenFile(image, os.O_WRONLY, 0)
	w.must(err)
	_, err = file.WriteAt([]byte(strings.Repeat("\xa5", length)), offset)
	w.must(err)
	w.must(file.Close())
}

// logOf returns the place of the journal of an ext4 or of the log of an xfs in an image.
func (w *world) logOf(image, fsType string) (offset int64, length int) {
	w.Helper()
	sb := make([]byte, 4096)
	file, err := os.Open(image)
	w.must(err)
	defer file.Close()
	_, err = file.ReadAt(sb, 0)
	w.must(err)
	if fsType == "xfs" {
		be := binary.BigEndian
		block, start, group := int64(be.Uint32(sb[4:])), int64(be.Uint64(sb[48:])), int64(be.Uint32(sb[84:]))
		inGroup := int64(1)<<sb[124] - 1
		return (start>>sb[124]*group + start&inGroup) * block, int(int64(be.Uint32(sb[96:])) * block)
	}
	block := int64(1024) << binary.LittleEndian.Uint32(sb[1024+24:])
	out, err := exec.CommandContext(w.context(), "debugfs", "-R", "bmap <8> 0", image).Output()
	w.must(err)
	first, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	w.must(err)
	return first * block, int(block)
}

// A damaged filesystem is never mounted or formatted, and the error says what to do. It is not changed either, except
// that the kernel writes to the log of an xfs with a good superblock before it finds the damage.
func TestDamagedFilesystem(t *testing.T) {
	const kib, mib = 1 << 10, 1 << 20
	type cut struct {
		offset int64
		length int
	}
	unknown := []string{filesystem.UnknownData, "is not formatted"}
	damaged := []string{"is damaged", "by hand"}
	perhaps := []string{"if the device is well, the filesystem is damaged"}
	for name, test := range map[string]struct {
		fsType     string
		log        bool // overwritten, after a crash
		cuts       []cut
		kind       backends.Kind
		words      []string
		checker    string
		kernelLogs bool
	}{
		"ext4, no superblock": {fsType: "ext4", cuts: []cut{{kib, kib}}, kind: backends.Invalid, words: unknown},
		"ext4, checksum": {fsType: "ext4", cuts: []cut{{kib + 0x88, 16}}, kind: backends.Unknown, words: damaged,
			checker: "e2fsck -n"},
		"ext4, group descriptors": {fsType: "ext4", cuts: []cut{{2 * kib, kib}}, kind: backends.Unknown, words: damaged,
			checker: "e2fsck -n"},
		"ext4, journal":      {fsType: "ext4", log: true, kind: backends.Unknown, words: perhaps, checker: "e2fsck -n"},
		"xfs, no superblock": {fsType: "xfs", cuts: []cut{{0, 512}}, kind: backends.Invalid, words: unknown},
		"xfs, checksum": {fsType: "xfs", cuts: []cut{{108, 12}}, kind: backends.Unknown, words: damaged,
			checker: "xfs_repair -n"},
		"xfs, group headers": {fsType: "xfs", cuts: []cut{{512, 3 * 512}}, kind: backends.Unknown, words: damaged,
			checker: "xfs_repair -n", kernelLogs: true},
		"xfs, log": {fsType: "xfs", log: true, kind: backends.Unknown, words: damaged,
			checker: "xfs_repair -n"},
		"btrfs, no superblock": {fsType: "btrfs", cuts: []cut{{64 * kib, 4 * kib}}, kind: backends.Invalid,
			words: unknown},
		"btrfs, checksum": {fsType: "btrfs", cuts: []cut{{64*kib + 299, 16}}, kind: backends.Unknown, words: perhaps,
			checker: "btrfs check"},
		"btrfs, trees": {fsType: "btrfs", cuts: []cut{{mib, 63 * mib}, {65 * mib, 60 * mib}},
			kind: backends.Unavailable, words: perhaps, checker: "btrfs check"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			prepare := (*world).unmounted
			if test.log {
				prepare = (*world).crashed
			}
			image := prepare(w, test.fsType)
			if test.log {
				offset, length := w.logOf(image, test.fsType)
				w.overwrite(image, offset, length)
			}
			for _, cut := range test.cuts {
				w.overwrite(image, cut.offset, cut.length)
			}
			request := w.stageRequest("origin-" + test.fsType)
			request.Use.FSType = test.fsType
			before := checksum(t, image)
			for range 2 {
				err := w.service.Stage(w.context(), request)
				t.Log(err)
				w.want(err, test.kind, append(test.words, test.checker, image)...)
				if checksum(t, image) != before && !test.kernelLogs {
					t.Fatal("the device was changed")
				}
				w.restart()
			}
			w.unstage(request)
			w.wantNothingLeft()
		})
	}
}

package node_test

import (
	"encoding/binary"
	"hash/crc32"
	"os"
	"strings"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node"
	"github.com/stowage-csi/stowage/pkg/node/device"
	"github.com/stowage-csi/stowage/tests/testfs"
)

// A btrfs may be on several devices, and an ext4 may have its journal on another one. The kernel then writes to all of
// them. Another device is another volume, or a disk of the node: it is not touched.
func TestFilesystemOfSeveralDevices(t *testing.T) {
	for name, hide := range map[string]func(w *world, image string){"btrfs": nil, "ext4": nil, "ext4 by UUID": byUUID} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			own, other := w.image("v", 128), w.image("other", 128)
			fsType, _, _ := strings.Cut(name, " ")
			staging := w.twoDevices(fsType, own, other)
			if hide != nil {
				hide(w, own)
			}
			ownBefore, otherBefore := checksum(t, own), checksum(t, other)
			err := w.service.Stage(w.context(), staging)
			w.unstage(staging)
			if checksum(t, own) != ownBefore || checksum(t, other) != otherBefore {
				t.Errorf("the device was written to: %t, the other device was: %t", checksum(t, own) != ownBefore,
					checksum(t, other) != otherBefore)
			}
			w.want(err, backends.Invalid, "2 devices")
			w.must(device.Detach(w.context(), other, patience))
			w.wantNothingLeft()
		})
	}
}

// The kernel believes the list of devices, not their number in the superblock. Nobody sees such a mount.
func TestBtrfsThatHidesADevice(t *testing.T) {
	w := newWorld(t)
	own, other := w.image("v", 128), w.image("other", 128)
	staging := w.twoDevices("btrfs", own, other)
	w.hideDevice(own)
	w.want(w.service.Stage(w.context(), staging), backends.Unavailable, "other devices")
	w.unstage(staging)
	w.must(device.Detach(w.context(), other, patience))
	w.wantNothingLeft()
}

// twoDevices creates a filesystem on two images, of which only the other one is attached then, and returns the request
// to stage the first.
func (w *world) twoDevices(fsType, own, other string) node.StageRequest {
	w.Helper()
	first, second := w.attach(own), w.attach(other)
	if fsType == "ext4" {
		testfs.Run(w, "mkfs.ext4", "-q", "-F", "-b", "4096", "-O", "journal_dev", second)
		testfs.Run(w, "mkfs.ext4", "-q", "-F", "-b", "4096", "-O", "^metadata_csum", "-J", "device="+second, first)
	} else {
		testfs.Run(w, "mkfs.btrfs", "-q", "-f", "-d", "raid0", "-m", "raid1", first, second)
	}
	w.must(device.Detach(w.context(), own, patience))
	staging := w.stageRequest("v")
	staging.Use.FSType = fsType
	return staging
}

// byUUID leaves only the UUID of the journal in the superblock of an ext4, and an error, for which e2fsck looks for the
// journal.
func byUUID(w *world, image string) {
	w.Helper()
	const superblock = 1024
	file, err := os.OpenFile(image, os.O_RDWR, 0)
	w.must(err)
	_, err = file.WriteAt(make([]byte, 4), superblock+228) // s_journal_dev
	w.must(err)
	_, err = file.WriteAt([]byte{3}, superblock+58) // s_state: EXT2_VALID_FS and EXT2_ERROR_FS
	w.must(err)
	w.must(file.Close())
}

// hideDevice writes into the superblocks of a btrfs that it is on one device.
func (w *world) hideDevice(image string) {
	w.Helper()
	file, err := os.OpenFile(image, os.O_RDWR, 0)
	w.must(err)
	for _, offset := range []int64{64 << 10, 64 << 20} {
		sb := make([]byte, 4096)
		_, err := file.ReadAt(sb, offset)
		w.must(err)
		binary.LittleEndian.PutUint64(sb[136:], 1) // num_devices
		binary.LittleEndian.PutUint32(sb, crc32.Checksum(sb[32:], crc32.MakeTable(crc32.Castagnoli)))
		_, err = file.WriteAt(sb, offset)
		w.must(err)
	}
	w.must(file.Close())
}

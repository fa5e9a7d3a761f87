package filesystem

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// repair is the intent to have e2fsck or resize2fs write to an ext that is not mounted. Neither has a
// journal, and both write even the superblock in pieces: killed in the middle, they leave what they cannot
// repair themselves. So the intent keeps the superblock as it was, and says which tool was at work: an
// e2fsck begins again; after a resize everything that e2fsck finds is the resize's, which only adds groups and
// touches no file, and it may repair it all (-y). Without the intent that is for a person to decide.
//
// The intent's file bears the time of the filesystem's last mount, and holds for no other: once it was
// mounted again, what e2fsck finds may be about data.
type repair struct {
	base string // the path without the time of the last mount
	path string
}

// The tools that an intent is about: the first byte of its file. The superblock follows.
const (
	repairCheck = 'c'
	repairGrow  = 'g'
)

// repairOf returns the intent for an ext as it was mounted last.
func repairOf(base string, device *os.File) (repair, error) {
	sb, err := superblockOf(device)
	if err != nil {
		return repair{}, err
	}
	return repair{base, fmt.Sprintf("%s-%08x", base, binary.LittleEndian.Uint32(sb[0x2c:]))}, nil // s_mtime
}

func superblockOf(device *os.File) ([]byte, error) {
	sb := make([]byte, extSuperblock)
	if _, err := device.ReadAt(sb, extOffset); err != nil {
		return nil, backends.Errorf(backends.Unavailable, "reading the superblock of %s: %w", device.Name(), err)
	}
	return sb, nil
}

// Interrupted reports whether a tool of Check or GrowOffline, with this intent, may have been cut short.
// Kinds: Unavailable when that cannot be told.
func Interrupted(intentBase string) (bool, error) {
	left, err := intentsOf(intentBase)
	return len(left) > 0, err
}

// Recover puts an ext filesystem right at which a tool of Check or GrowOffline, with this intent, was cut
// short, if Interrupted says that one may have been. It must be called before the device is probed.
//
// Kinds: Busy when the tool still works; Unavailable when the filesystem cannot be put right (yet).
func (t *Tools) Recover(ctx context.Context, path, intentBase string) error {
	device, err := lockDevice(ctx, path)
	if err != nil {
		return err
	}
	defer device.unlock()
	r, err := repairOf(intentBase, device.File)
	if err != nil {
		return err
	}
	kept, err := os.ReadFile(r.path)
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && len(kept) != 1+extSuperblock:
		return r.settle(device) // of another time, or cut short itself: no tool had begun
	case err != nil:
		return backends.Errorf(backends.Unavailable, "reading what was kept of the filesystem on %s: %w", path, err)
	}
	if err := restoreSuperblock(device, path, kept[1:]); err != nil {
		return err
	}
	what, options := unfinished(kept[0], kept[1:])
	if len(options) > 0 {
		if device.turn, err = t.take(ctx, path); err != nil {
			return err
		}
		defer device.turn.release()
		if err := checkExt(ctx, device, path, options...); err != nil {
			return backends.Errorf(backends.KindOf(err), "%s: %w", what, err)
		}
	}
	return r.settle(device)
}

// unfinished returns with which options e2fsck ends what a tool began; none when the tool's filesystem was well
// before. The superblock on the device does not say: e2fsck writes there that all is well, and what it wrote
// elsewhere may have failed, as on an image whose pool is full.
func unfinished(tool byte, superblock []byte) (what string, options []string) {
	switch {
	case tool == repairGrow:
		return "repairing after a resize that was cut short", []string{"-f", "-y"}
	case !clean(bytes.NewReader(slices.Concat(make([]byte, extOffset), superblock))):
		return "checking again after a check that was cut short", []string{"-f", "-p"}
	}
	return "", nil
}

// restoreSuperblock puts a superblock back if the one on the device is torn.
func restoreSuperblock(device *lockedDevice, path string, kept []byte) error {
	sb, err := superblockOf(device.File)
	if err != nil || !torn(sb) {
		return err
	}
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return backends.Errorf(backends.Unavailable, "opening %s to put its superblock back: %w", path, err)
	}
	file := os.NewFile(uintptr(fd), path)
	_, err = file.WriteAt(kept, extOffset)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return backends.Errorf(backends.Unavailable, "putting the superblock of %s back: %w", path, err)
	}
	return nil
}

// torn reports whether a superblock does not fit its checksum (ext4, "Checksums"); one without a checksum
// is taken for whole.
func torn(sb []byte) bool {
	const metadataChecksum, checksumAt = 0x400, 0x3fc // s_feature_ro_compat, s_checksum
	if binary.LittleEndian.Uint32(sb[100:])&metadataChecksum == 0 {
		return false
	}
	sum := ^crc32.Checksum(sb[:checksumAt], crc32.MakeTable(crc32.Castagnoli))
	return sum != binary.LittleEndian.Uint32(sb[checksumAt:])
}

// record writes the intent down and returns once it would survive a loss of power.
func (r repair) record(tool byte, device *os.File) error {
	sb, err := superblockOf(device)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(r.path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = file.Write(append([]byte{tool}, sb...))
		err = errors.Join(err, file.Sync(), file.Close(), syncNames(filepath.Dir(r.path)))
	}
	if err != nil {
		return backends.Errorf(backends.Unavailable, "recording that a filesystem is about to be repaired or grown: %w", err)
	}
	return nil
}

// settle removes the intent, and those of other times, for good: after what it was about is on the device,
// and before the filesystem is mounted.
func (r repair) settle(device *lockedDevice) error {
	if err := device.Sync(); err != nil {
		return backends.Errorf(backends.Unavailable, "writing back %s: %w", device.Name(), err)
	}
	left, err := intentsOf(r.base)
	for _, path := range left {
		if gone := os.Remove(path); !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	if err = errors.Join(err, syncNames(filepath.Dir(r.base))); err != nil {
		return backends.Errorf(backends.Unavailable, "removing the record that a filesystem is being repaired or grown: %w",
			err)
	}
	return nil
}

// intentsOf returns the paths of the intents of all times. A directory that cannot be read is not an empty one.
// Kinds: Unavailable.
func intentsOf(base string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Dir(base))
	if err != nil {
		return nil, backends.Errorf(backends.Unavailable,
			"looking for records that a filesystem is being repaired or grown: %w", err)
	}
	var paths []string
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), filepath.Base(base)+"-") {
			paths = append(paths, filepath.Join(filepath.Dir(base), entry.Name()))
		}
	}
	return paths, nil
}

// syncNames makes the names in a directory durable (fsync(2)).
func syncNames(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

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
	"github.com/stowage-csi/stowage/pkg/deadline"
)

// repair is the intent to have e2fsck or resize2fs write to an unmounted ext. Neither tool has a journal, and both
// write even the superblock in pieces, so a kill leaves a state that they cannot repair themselves. So the intent keeps
// the earlier superblock, and says which tool was at work. An e2fsck is run again. After a resize, all errors that
// e2fsck finds are the resize's, which only adds groups and touches no file, so e2fsck may repair them all (-y).
// Without the intent only a person may decide that.
//
// The name of the intent's file contains the time of the filesystem's last mount, and the intent is valid for no other:
// after another mount, the errors that e2fsck finds may be about data.
type repair struct {
	base string // the path without the time of the last mount
	path string
}

// The first byte of an intent's file names the tool. The superblock follows.
const (
	repairCheck = 'c'
	repairGrow  = 'g'
)

// repairOf returns the intent for an ext as of its last mount.
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

// Interrupted reports whether a tool of Check or GrowOffline, with this intent, may have been interrupted. Kinds:
// Unavailable when that cannot be told.
func Interrupted(intentBase string) (bool, error) {
	left, err := intentsOf(intentBase)
	return len(left) > 0, err
}

// Recover repairs an ext filesystem on which a tool of Check or GrowOffline, with this intent, was interrupted, if
// Interrupted says that it may have been. It must be called before the device is probed.
//
// Kinds: Unknown when e2fsck leaves errors, whose repair may lose data; Unsupported when e2fsck is not installed; Busy
// when the tool still works; Unavailable when the filesystem cannot be repaired (yet).
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
	kept, err := r.kept(path)
	if err != nil {
		return err
	}
	if kept == nil {
		return r.settle(device)
	}
	_ = unix.Utimes(r.path, nil) // As one that was recorded now, dropOldest keeps it while a person may have to decide.
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

// CutShort reports whether a tool of Check or GrowOffline, with this intent, was interrupted on the filesystem of a
// device, and left it in a state that only Recover repairs. It changes nothing. Kinds: Unavailable when that cannot be
// told.
func CutShort(ctx context.Context, device *os.File, intentBase string) (bool, error) {
	if interrupted, err := Interrupted(intentBase); err != nil || !interrupted {
		return false, err
	}
	call := deadline.Call{Name: fmt.Sprintf("looking for a repair of %q that was cut short", device.Name())}
	return deadline.Do(ctx, call, func(context.Context) (bool, error) {
		r, err := repairOf(intentBase, device)
		if err != nil {
			return false, err
		}
		kept, err := r.kept(device.Name())
		if err != nil || kept == nil {
			return false, err
		}
		sb, err := superblockOf(device)
		_, options := unfinished(kept[0], kept[1:])
		return err == nil && (len(options) > 0 || torn(sb)), err
	}, nil)
}

// kept returns the contents of the intent; nil if there is none as of the last mount, or if the intent itself is
// incomplete: no tool had begun then. Kinds: Unavailable.
func (r repair) kept(path string) ([]byte, error) {
	kept, err := os.ReadFile(r.path)
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && len(kept) != 1+extSuperblock:
		return nil, nil
	case err != nil:
		return nil, backends.Errorf(backends.Unavailable, "reading what was kept of the filesystem on %s: %w", path, err)
	}
	return kept, nil
}

// unfinished returns the options with which e2fsck completes what a tool began; none if the tool's filesystem had no
// errors before. The superblock on the device does not tell that. e2fsck writes there that all is well, and its other
// writes may have failed, as on an image whose pool is full.
func unfinished(tool byte, superblock []byte) (what string, options []string) {
	switch {
	case tool == repairGrow:
		return "repairing after a resize that was cut short", []string{"-f", "-y"}
	case !clean(bytes.NewReader(slices.Concat(make([]byte, extOffset), superblock))):
		return "checking again after a check that was cut short", []string{"-f", "-p"}
	}
	return "", nil
}

// restoreSuperblock writes a superblock back if the one on the device is torn.
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

// torn reports whether a superblock does not match its checksum (ext4, "Checksums"). A superblock without a checksum
// counts as complete.
func torn(sb []byte) bool {
	const metadataChecksum, checksumAt = 0x400, 0x3fc // s_feature_ro_compat, s_checksum
	if binary.LittleEndian.Uint32(sb[100:])&metadataChecksum == 0 {
		return false
	}
	sum := ^crc32.Checksum(sb[:checksumAt], crc32.MakeTable(crc32.Castagnoli))
	return sum != binary.LittleEndian.Uint32(sb[checksumAt:])
}

// record writes the intent and returns once it would survive a loss of power.
func (r repair) record(tool byte, device *os.File) error {
	sb, err := superblockOf(device)
	if err != nil {
		return err
	}
	file, err := r.create()
	if err == nil {
		_, err = file.Write(append([]byte{tool}, sb...))
		err = errors.Join(err, file.Sync(), file.Close(), syncIntents(r.base))
	}
	if err != nil {
		return backends.Errorf(backends.Unavailable, "recording that a filesystem is about to be repaired or grown: %w", err)
	}
	r.dropOldest()
	return nil
}

// intentsKept is how many intents a node keeps. An intent of a volume that never comes back, because it was deleted or
// is used on another node, is settled by no call.
const intentsKept = 1024

// dropOldest removes the intents that were recorded or used first while there are too many, and never r itself. The
// data of their filesystems stay: without its intent, e2fsck repairs a filesystem only as far as that loses nothing,
// and one that says that it is clean is not checked. An intent that cannot be removed does no harm.
func (r repair) dropOldest() {
	entries, err := os.ReadDir(filepath.Dir(r.path))
	if err != nil || len(entries) <= intentsKept {
		return // The next intent tries again.
	}
	var others []fs.FileInfo
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && entry.Name() != filepath.Base(r.path) {
			others = append(others, info)
		}
	}
	slices.SortFunc(others, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	for _, info := range others[min(len(others), intentsKept-1):] {
		_ = os.Remove(filepath.Join(filepath.Dir(r.path), info.Name())) // see above
	}
}

// create creates the file of the intent, and the directory of all intents if it does not exist. The end of another
// repair may remove the directory in between.
func (r repair) create() (file *os.File, err error) {
	const attempts = 100
	for range attempts {
		err = os.Mkdir(filepath.Dir(r.path), 0o700)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		file, err = os.OpenFile(r.path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
		if !errors.Is(err, fs.ErrNotExist) {
			return file, err
		}
	}
	return nil, err
}

// settle writes the device back and then durably removes the intent, and those of other times. The last intent of the
// node takes the directory with it. It is called before the filesystem is mounted.
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
	_ = unix.Rmdir(filepath.Dir(r.base)) // It keeps the intents of others, and does no harm when it is empty.
	if err = errors.Join(err, syncIntents(r.base)); err != nil {
		return backends.Errorf(backends.Unavailable, "removing the record that a filesystem is being repaired or grown: %w",
			err)
	}
	return nil
}

// intentsOf returns the paths of the intents of all times. The directory exists as long as there are intents. An
// unreadable directory does not count as empty. Kinds: Unavailable.
func intentsOf(base string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Dir(base))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
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

// syncIntents makes the names of the intents durable, and that of their directory, which may have been created or
// removed.
func syncIntents(base string) error {
	dir := filepath.Dir(base)
	return errors.Join(syncNames(dir), syncNames(filepath.Dir(dir)))
}

// syncNames makes the names in a directory durable (fsync(2)). A directory that was removed has none.
func syncNames(path string) error {
	dir, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

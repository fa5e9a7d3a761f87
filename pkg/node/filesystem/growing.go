package filesystem

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// growing is the intent to grow an ext while it is not mounted. resize2fs has no journal: killed in the
// middle it leaves group descriptors, bitmaps and the resize inode at odds, and e2fsck -p gives up on that. Files
// are not touched, because new groups are only added; so where the intent stands, everything that e2fsck finds is
// the resize's, and it may repair it all (-y). Without the intent that is for a person to decide.
//
// The intent's file bears the time of the filesystem's last mount, and holds for no other: once it was
// mounted again, what e2fsck finds may be about data.
type growing struct {
	base string // the path without the time of the last mount
	path string
}

// growingOf returns the intent for an ext as it was mounted last.
func growingOf(base string, device *os.File) (growing, error) {
	var mounted [4]byte // s_mtime (ext4, "The Super Block")
	if _, err := device.ReadAt(mounted[:], extOffset+0x2c); err != nil {
		return growing{}, backends.Errorf(backends.Unavailable, "reading the superblock of %s: %w", device.Name(), err)
	}
	return growing{base, fmt.Sprintf("%s-%08x", base, binary.LittleEndian.Uint32(mounted[:]))}, nil
}

// Recover repairs an ext filesystem whose growing by GrowOffline, with this intent, was cut short. It does
// nothing when none was. It must be called before the device is probed.
//
// Kinds: Busy when the resize goes on; Unavailable when it cannot be repaired (yet).
func Recover(ctx context.Context, path, intentBase string) error {
	if left, err := intentsOf(intentBase); err != nil || len(left) == 0 {
		return err
	}
	device, err := lockDevice(path)
	if err != nil {
		return err
	}
	defer device.unlock()
	g, err := growingOf(intentBase, device.File)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(g.path); err == nil {
		err = checkExt(ctx, device, path, "-f", "-y")
		if err != nil {
			return backends.Errorf(backends.KindOf(err), "repairing after a resize that was cut short: %w", err)
		}
	}
	return g.settle(device)
}

// record writes the intent down and returns once it would survive a loss of power.
func (g growing) record() error {
	file, err := os.OpenFile(g.path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		err = errors.Join(file.Sync(), file.Close(), syncNames(filepath.Dir(g.path)))
	}
	if err != nil {
		return backends.Errorf(backends.Unavailable, "recording that a filesystem is about to grow: %w", err)
	}
	return nil
}

// settle removes the intent, and those of other times, for good: after what it was about is on the device,
// and before the filesystem is mounted.
func (g growing) settle(device *lockedDevice) error {
	if err := device.Sync(); err != nil {
		return backends.Errorf(backends.Unavailable, "writing back %s: %w", device.Name(), err)
	}
	left, err := intentsOf(g.base)
	for _, path := range left {
		if gone := os.Remove(path); !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	if err = errors.Join(err, syncNames(filepath.Dir(g.base))); err != nil {
		return backends.Errorf(backends.Unavailable, "removing the record that a filesystem is growing: %w", err)
	}
	return nil
}

// intentsOf returns the paths of the intents of all times. A directory that cannot be read is not an empty one.
// Kinds: Unavailable.
func intentsOf(base string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Dir(base))
	if err != nil {
		return nil, backends.Errorf(backends.Unavailable, "looking for records that a filesystem is growing: %w", err)
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

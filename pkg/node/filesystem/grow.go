package filesystem

import (
	"context"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// grid is how a filesystem divides its device. It grows by whole blocks, and by a whole group, which must not be too
// small. Zero stands for a value that does not matter.
type grid struct {
	block  int64 // bytes
	group  int64 // blocks in a group
	first  int64 // the first block that belongs to a group
	least  int64 // a last group with fewer blocks is not created
	step   int64 // bytes: it grows by multiples of this; 0 for a block
	device int64 // bytes: it does not grow to a smaller device
}

// within returns the maximum size in bytes of the filesystem on a device of this size.
func (g grid) within(device int64) int64 {
	if g.block <= 0 {
		return device
	}
	blocks := device / g.stride() * g.stride() / g.block
	if g.group <= 0 {
		return blocks * g.block
	}
	if rest := (blocks - g.first) % g.group; rest > 0 && rest < g.least {
		blocks -= rest
	}
	return blocks * g.block
}

// stride returns the minimum number of bytes by which the filesystem grows.
func (g grid) stride() int64 { return max(g.step, g.block, 1) }

// NeedsGrow reports whether a filesystem could be larger on a device of this size. A size that the filesystem cannot
// use, because the rest is less than a block or too small a group, does not count.
func NeedsGrow(found Found, deviceSize int64) bool {
	if found.SizeBytes <= 0 || deviceSize <= found.SizeBytes || deviceSize < found.grid.device || !makes(found.Type) {
		return false
	}
	if found.grid.sameGroup(found.SizeBytes, deviceSize) {
		return deviceSize/found.grid.stride() > found.SizeBytes/found.grid.stride()
	}
	return found.grid.within(deviceSize) > found.SizeBytes
}

// sameGroup reports whether both sizes end in the same group: then growing adds no group.
func (g grid) sameGroup(a, b int64) bool {
	if g.block <= 0 || g.group <= 0 {
		return false
	}
	last := func(size int64) int64 { return (size/g.block - g.first - 1) / g.group }
	return last(a) == last(b)
}

// makes reports whether this driver creates the type, or it is an older ext, which grows as ext4 does.
func makes(fsType string) bool {
	switch fsType {
	case "ext2", "ext3", "ext4", "xfs", "btrfs":
		return true
	}
	return false
}

// isExt reports whether e2fsprogs handles the type.
func isExt(fsType string) bool { return fsType == "ext2" || fsType == "ext3" || fsType == "ext4" }

// GrowOffline grows an unmounted filesystem to fill its device. Only ext filesystems grow unmounted. For the others it
// does nothing, and GrowMounted grows them after the mount.
//
// The end of the context stops the check before the resize, but not the resize, which runs to its end. If it is killed
// nevertheless, Recover repairs what it left. The intent to grow is a file whose path begins with intentBase.
//
// Kinds: as Check; Unknown with resize2fs's words when it fails.
func (t *Tools) GrowOffline(ctx context.Context, path, fsType, intentBase string) error {
	if !isExt(fsType) {
		return nil
	}
	if err := Missing(fsType); err != nil {
		return err
	}
	device, err := lockDevice(ctx, path)
	if err != nil {
		return err
	}
	defer device.unlock()
	if device.turn, err = t.take(ctx, path); err != nil {
		return err
	}
	defer device.turn.release()
	r, err := repairOf(intentBase, device.File)
	if err == nil {
		err = r.record(repairCheck, device.File)
	}
	if err != nil {
		return err
	}
	// resize2fs refuses a filesystem that was not checked since it was last mounted.
	if err := checkExt(ctx, device, path, "-f", "-p"); err != nil {
		return err
	}
	return resize(ctx, device, path, r)
}

func resize(ctx context.Context, device *lockedDevice, path string, r repair) error {
	if err := r.record(repairGrow, device.File); err != nil {
		return err
	}
	result, err := run(ctx, command{tool: "resize2fs", args: []string{path}, device: device, mustEnd: true})
	if err != nil {
		return err
	}
	if result.code != 0 {
		return backends.Errorf(backends.Unknown, "growing the filesystem on %s: resize2fs failed with exit code %d: %s", path,
			result.code, result.words)
	}
	return r.settle(device)
}

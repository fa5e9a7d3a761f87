package filesystem

import (
	"context"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// grid is how a filesystem divides its device: it grows by whole blocks, and by a whole group that
// must not be too small. Zero stands for what does not matter.
type grid struct {
	block  int64 // bytes
	group  int64 // blocks in a group
	first  int64 // the first block that belongs to a group
	least  int64 // a last group with fewer blocks is not made
	step   int64 // bytes: it grows by multiples of so many; 0 for a block
	device int64 // bytes: it does not grow to a smaller device
}

// within returns how large, in bytes, the filesystem can be on a device of so many bytes.
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

// stride is by how many bytes the filesystem grows at least.
func (g grid) stride() int64 { return max(g.step, g.block, 1) }

// NeedsGrow reports whether a filesystem could be larger on a device of so many bytes. Sizes that the
// filesystem cannot use, because they make up no whole block or too small a group, do not count.
func NeedsGrow(found Found, deviceSize int64) bool {
	if found.SizeBytes <= 0 || deviceSize <= found.SizeBytes || deviceSize < found.grid.device || !makes(found.Type) {
		return false
	}
	if found.grid.sameGroup(found.SizeBytes, deviceSize) {
		return deviceSize/found.grid.stride() > found.SizeBytes/found.grid.stride()
	}
	return found.grid.within(deviceSize) > found.SizeBytes
}

// sameGroup reports whether both sizes end in the same group: then growing makes no new one.
func (g grid) sameGroup(a, b int64) bool {
	if g.block <= 0 || g.group <= 0 {
		return false
	}
	last := func(size int64) int64 { return (size/g.block - g.first - 1) / g.group }
	return last(a) == last(b)
}

// makes reports whether the type is one that this driver makes, or an older ext, which grows as ext4 does.
func makes(fsType string) bool {
	switch fsType {
	case "ext2", "ext3", "ext4", "xfs", "btrfs":
		return true
	}
	return false
}

// isExt reports whether e2fsprogs is responsible.
func isExt(fsType string) bool { return fsType == "ext2" || fsType == "ext3" || fsType == "ext4" }

// GrowOffline makes an unmounted filesystem fill its device. Only ext filesystems grow without being
// mounted; for the others it does nothing, and GrowMounted does it after the mount.
//
// The end of the context ends the check before the resize, but not the resize, which comes to its own end.
// Should it be killed all the same, Recover repairs what it left; the intent to grow is a file whose path begins
// with intentBase.
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

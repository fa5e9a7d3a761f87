package filesystem

import (
	"context"
	"os"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// Exit codes of e2fsck(8), added together.
const (
	fsckCorrected   = 1
	fsckReboot      = 2 // corrected, and a reboot is due where the filesystem is mounted
	fsckUncorrected = 4
	fsckFailed      = 8
	fsckCancelled   = 32
)

// Check repairs an unmounted ext filesystem as far as that loses nothing (e2fsck -p), and leaves one
// alone that was unmounted cleanly. An xfs or btrfs is not checked: its log is replayed by the mount.
//
// Kinds: Unknown when there are errors whose repair may lose data: that is for a person to decide;
// Busy when another tool works on the device; Unavailable when the check could not be made.
func Check(ctx context.Context, path, fsType string) error {
	if !isExt(fsType) {
		return nil
	}
	device, err := lockDevice(path)
	if err != nil {
		return err
	}
	defer device.unlock()
	if clean(device.File) {
		return nil
	}
	if err := Missing(fsType); err != nil {
		return err
	}
	return checkExt(ctx, device, path, "-p")
}

// clean tells whether the superblock says that there is nothing to check. One that cannot be read says
// nothing.
func clean(device *os.File) bool {
	w := &window{r: device, size: extOffset + extSuperblock}
	found, ok := readExt(w, extOffset)
	return ok && !found.Dirty
}

// checkExt runs e2fsck with the options.
func checkExt(ctx context.Context, device *lockedDevice, path string, options ...string) error {
	result, err := run(ctx, command{tool: "e2fsck", args: append(options, path), device: device, gentle: true})
	if err != nil {
		return err
	}
	switch {
	case result.code >= 0 && result.code&^(fsckCorrected|fsckReboot) == 0:
		return nil
	case result.code > 0 && result.code&fsckUncorrected != 0:
		return backends.Errorf(backends.Unknown, "the filesystem on %s has errors that cannot be repaired without losing data: "+
			"look at it with e2fsck -n and decide; e2fsck -p says: %s", path, result.words)
	case result.code > 0 && result.code&fsckCancelled != 0:
		return backends.Errorf(backends.Unavailable, "the check of %s was cancelled", path)
	}
	return backends.Errorf(backends.Unavailable, "the check of %s could not be made (e2fsck exit code %d, %d stands for an operational error): %s",
		path, result.code, fsckFailed, result.words)
}

package filesystem

import (
	"context"
	"io"

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

// Check repairs an unmounted ext filesystem as far as that loses nothing (e2fsck -p). It does so if the superblock says
// that errors were found or, without a journal, that it was not unmounted. Check does not replay a journal: the mount
// does that, as for xfs and btrfs, and can be interrupted at any point, which e2fsck cannot. If e2fsck is killed,
// Recover finds what it needs under intentBase.
//
// Kinds: Unknown when there are errors whose repair may lose data, which is for a person to decide; Unsupported when a
// tool for the type is not installed; Busy when another tool works on the device; Unavailable when the check could not
// be made, or the context ended: e2fsck is asked to end then.
func (t *Tools) Check(ctx context.Context, path, fsType, intentBase string) error {
	if !isExt(fsType) {
		return nil
	}
	device, err := lockDevice(ctx, path)
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
	if err := checkExt(ctx, device, path, "-p"); err != nil {
		return err
	}
	return r.settle(device)
}

// clean reports whether the superblock says that there is nothing to check. An unreadable superblock says nothing.
func clean(device io.ReaderAt) bool {
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
		return backends.Errorf(backends.Unknown,
			"the filesystem on %s has errors that cannot be repaired without losing data: "+
				"look at it with e2fsck -n and decide; e2fsck -p says: %s", path, result.words)
	case result.code > 0 && result.code&fsckCancelled != 0:
		return backends.Errorf(backends.Unavailable, "the check of %s was cancelled", path)
	}
	return backends.Errorf(backends.Unavailable,
		"the check of %s could not be made (e2fsck exit code %d, %d stands for an operational error): %s",
		path, result.code, fsckFailed, result.words)
}

package node

import (
	"context"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node/device"
	"github.com/stowage-csi/stowage/pkg/node/filesystem"
	"github.com/stowage-csi/stowage/pkg/node/ledger"
	"github.com/stowage-csi/stowage/pkg/node/mount"
)

// Read-only staging means that not one byte of the device changes. The mount option ro does not ensure that: it keeps
// users from writing, but the kernel replays a journal first. Options such as noload do not ensure it either: an ext4
// that is mounted with ro and noload still cleans up after files that were deleted while open, and notes errors in its
// superblock. So the device itself refuses writes before the filesystem is mounted, and the options make the filesystem
// tolerate that.
//
// A reader of a filesystem that was not unmounted cleanly sees it as it stands on the device: what is only in the
// journal is missing or stale, and an xfs may look empty. So the request must ask for that (asItStands). Staging the
// volume once for writing replays the journal. No reader replays it, so several nodes can read at the same time.

// openDevice opens the device for its intended use. A read-only image gets a loop device that refuses writes; any other
// device is write-protected when it is mounted (protected).
func (st *staging) openDevice(ctx context.Context, source backends.Device) (*device.Device, error) {
	options := device.Options{ReadOnly: st.want.ReadOnly, Persistent: st.request.Use.Type == backends.Block}
	if st.request.Use.Type == backends.Mount {
		options.Opened = filesystem.Announce
	}
	opened, err := device.Open(ctx, source, options)
	if err != nil || st.present {
		return opened, err
	}
	protected, err := writeProtected(opened)
	switch {
	case err != nil || protected == st.want.ReadOnly:
	case source.Image && st.want.ReadOnly:
		return st.attachReadOnly(ctx, source, options, opened)
	case !st.want.ReadOnly:
		// A previous user may have protected a loop device: detaching does not lift that.
		err = setWriteProtection(opened, false)
	}
	if err != nil {
		_ = opened.Close() // nothing was written
		return nil, err
	}
	return opened, nil
}

// protected calls mount and, for read-only staging, write-protects the device first. It does so as late as possible, so
// that an earlier refusal leaves nothing behind, and lifts the protection if the mount fails. A mount that was given up
// may still be at work, so the protection stays then; staging for writing lifts it.
func (st *staging) protected(ctx context.Context, mount func() error) error {
	if !st.want.ReadOnly {
		return mount()
	}
	switch before, err := writeProtected(st.device); {
	case err != nil:
		return err
	case before:
		return mount()
	}
	if err := setWriteProtection(st.device, true); err != nil {
		return err
	}
	err := mount()
	if err != nil && ctx.Err() == nil {
		_ = setWriteProtection(st.device, false) // the error of the mount is what counts
	}
	return err
}

// attachReadOnly reattaches for reading an image that an earlier call left attached for writing.
func (st *staging) attachReadOnly(ctx context.Context, source backends.Device, options device.Options,
	writable *device.Device) (*device.Device, error) {
	_ = writable.Close() // nothing was written
	if err := device.Detach(ctx, source.Path, st.service.detachTime(ctx)); err != nil {
		return nil, err
	}
	opened, err := device.Open(ctx, source, options)
	if err != nil {
		return nil, err
	}
	protected, err := writeProtected(opened)
	if err == nil && !protected {
		err = backends.Errorf(backends.InUse,
			"%s holds %s for writing, so that it cannot be staged for reading only: detach it", opened.Path, source.Path)
	}
	if err != nil {
		_ = opened.Close() // nothing was written
		return nil, err
	}
	return opened, nil
}

// writeProtected reports whether a device refuses writes (BLKROGET, ioctl_list(2)).
func writeProtected(d *device.Device) (bool, error) {
	value, err := unix.IoctlGetInt(int(d.File.Fd()), unix.BLKROGET)
	if err != nil {
		return false, backends.Errorf(backends.Unavailable, "asking %s whether it can be written to: %w", d.Path, err)
	}
	return value != 0, nil
}

// setWriteProtection makes the kernel refuse writes to a device, or accept them again (BLKROSET). It cannot lift the
// device's own protection (Linux 5.11). Kinds: Denied when that is needed; Unavailable.
func setWriteProtection(d *device.Device, on bool) error {
	value := 0
	if on {
		value = 1
	}
	if err := unix.IoctlSetPointerInt(int(d.File.Fd()), unix.BLKROSET, value); err != nil {
		return backends.Errorf(backends.Unavailable, "setting the write protection of %s to %t: %w", d.Path, on, err)
	}
	switch protected, err := writeProtected(d); {
	case err != nil:
		return err
	case protected && !on:
		return backends.Errorf(backends.Denied,
			"%s is write-protected itself: stage it for reading only, or attach it for writing", d.Path)
	case !protected && on:
		return backends.Errorf(backends.Unavailable, "%s still takes writes after they were turned off", d.Path)
	}
	return nil
}

// protects reports whether a device of the node is write-protected for a read-only volume that is still mounted. After
// the device was taken away, its name and number may be those of another device, whose protection is not this volume's.
// An image's protection goes with its loop device.
func protects(ctx context.Context, staged ledger.Staging) bool {
	source := staged.Source
	if !staged.ReadOnly || source.Kind != ledger.Device || source.Image || source.DevicePath == "" {
		return false
	}
	state, err := mount.Inspect(ctx, placeOf(staged))
	return err == nil && shows(state, staged)
}

// unprotect lifts the write protection of a volume's device for the next user. It is a courtesy: staging for writing
// lifts it too.
func unprotect(staged ledger.Staging) {
	source := staged.Source
	if isAnother(source.DevicePath, source) {
		return
	}
	fd, err := unix.Open(source.DevicePath, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer func() { _ = unix.Close(fd) }() // opened for reading
	var stat unix.Stat_t
	if unix.Fstat(fd, &stat) == nil && stat.Mode&unix.S_IFMT == unix.S_IFBLK &&
		stat.Rdev == unix.Mkdev(source.Major, source.Minor) {
		_ = unix.IoctlSetPointerInt(fd, unix.BLKROSET, 0) // see above
	}
}

// mountOptions returns the requested options. For a read-only ext4 it omits those that say how to write: ext4 refuses
// them if it has no journal to write to.
func (st *staging) mountOptions() []string {
	if st.want.Source.FSType != "ext4" || !st.want.ReadOnly {
		return st.request.MountOptions
	}
	return slices.DeleteFunc(slices.Clone(st.request.MountOptions), func(option string) bool {
		name, _, _ := strings.Cut(option, "=")
		switch name {
		case "data", "commit", "journal_checksum", "nojournal_checksum", "journal_async_commit":
			return true
		}
		return false
	})
}

// neededOptions returns the additional options that the filesystem needs.
//
// A clone of an xfs has the UUID of its original, and the kernel mounts it beside the original only with nouuid. Every
// xfs gets it: the request does not tell whether a volume is a clone or has one; whether an equal UUID is mounted
// already cannot be asked without a race; and the kernel's refusal is EINVAL, like many others. With nouuid the kernel
// no longer detects one filesystem that is seen through two devices. The proof of the device's identity covers that.
//
// An ext4 superblock says what the kernel does on an error, which may be a panic, and a writer of the raw device may
// have set it.
func (st *staging) neededOptions() []string {
	var needs []string
	readOnly := st.want.ReadOnly
	switch st.want.Source.FSType {
	case "ext4":
		needs = []string{"errors=remount-ro"}
		if readOnly {
			needs = append(needs, "noload")
		}
	case "xfs":
		needs = []string{"nouuid"}
		if readOnly {
			needs = append(needs, "norecovery")
		}
	case "btrfs":
		if readOnly {
			needs = []string{"rescue=nologreplay"} // Linux 5.9
		}
	}
	return slices.DeleteFunc(needs, func(option string) bool { return slices.Contains(st.request.MountOptions, option) })
}

// tellUnreplayed warns of what a reader may miss.
func (st *staging) tellUnreplayed(ctx context.Context) {
	if st.want.ReadOnly && st.found.Unreplayed {
		st.service.log.WarnContext(ctx,
			"the filesystem was not unmounted cleanly, and for reading only its journal is not replayed: "+
				"what was written last may be missing or stale; stage the volume once for writing to have it replayed",
			"volume", st.request.Volume, "device", st.device.Path, "filesystem", st.found.Type)
	}
}

// compareOptions refuses an existing mount that lacks a requested option, as far as the options concern the mount
// itself. Kinds: Exists, naming the option.
func compareOptions(place string, options []string) error {
	lacking, err := mount.Lacks(place, options)
	if err != nil || lacking == "" {
		return err
	}
	return backends.Errorf(backends.Exists,
		"it is mounted at %s already without the option %q that is asked for now: take it down first", place, lacking)
}

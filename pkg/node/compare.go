package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node/device"
	"github.com/stowage-csi/stowage/pkg/node/ledger"
	"github.com/stowage-csi/stowage/pkg/node/mount"
)

// compare checks what is already there, first in the ledger and then at the place itself.
func (st *staging) compare(ctx context.Context) error {
	if err := st.compareRecord(ctx); err != nil {
		return err
	}
	if err := st.comparePlace(ctx); err != nil {
		return err
	}
	// Nothing is left of a volume that is not at its place and that the backend noted as unused before this call.
	if st.record.Staged != nil || st.taken && !st.present {
		return nil
	}
	return st.adoptPublications(ctx)
}

// comparePlace checks what is mounted at the place.
func (st *staging) comparePlace(ctx context.Context) error {
	state, err := mount.Inspect(ctx, st.recipe.place)
	switch {
	case mount.Corrupted(err):
		st.service.log.WarnContext(ctx, "what is mounted is corrupted and is taken down", "volume", st.request.Volume, "path",
			st.recipe.place, "error", err)
		return mount.Unmount(ctx, st.recipe.place)
	case err != nil:
		return err
	case state.Mounted && st.deviceTakenAway(state):
		st.service.log.WarnContext(ctx, "the device that was staged was taken away, and its node is taken down", "volume",
			st.request.Volume, "path", st.recipe.place)
		return mount.Unmount(ctx, st.recipe.place)
	case state.Mounted:
		return st.compareMount(ctx, state)
	}
	return st.checkDirectory(ctx, state)
}

// deviceTakenAway reports whether the place shows the node of a device that was staged raw and has been taken away.
func (st *staging) deviceTakenAway(state mount.State) bool {
	if st.request.Use.Type != backends.Block {
		return false
	}
	old := st.record.Staged
	return state.Deleted || old != nil && isAsRecorded(state, *old) && isTakenAway(state, *old)
}

// compareRecord refuses a volume that is staged elsewhere or in another way. If the recorded mount is gone or
// corrupted, it clears what may be left instead.
func (st *staging) compareRecord(ctx context.Context) error {
	old := st.record.Staged
	if old == nil || st.compatible(*old) {
		return nil
	}
	place := placeOf(*old)
	state, err := mount.Inspect(ctx, place)
	switch {
	case err != nil && !mount.Corrupted(err):
		return err
	case err == nil && state.Mounted:
		return backends.Errorf(backends.Exists,
			"it is staged already at %s (type %s, read-only %t, filesystem %q%s): unstage it first", old.Path, old.Type,
			old.ReadOnly, old.Source.FSType, otherLabels(old.Labels, st.want.Labels))
	}
	_, live := st.service.livePublications(ctx, st.record)
	return st.service.clear(ctx, st.request.Volume, *old, live)
}

// compatible reports whether a recorded staging matches the request.
func (st *staging) compatible(old ledger.Staging) bool {
	asked := st.askedFSType()
	return old.Path == st.want.Path && old.Type == st.want.Type && old.ReadOnly == st.want.ReadOnly &&
		old.Labels == st.want.Labels &&
		(asked == "" || old.Source.FSType == "" || asked == old.Source.FSType)
}

// otherLabels returns the SELinux labels that a volume is staged with and those asked for, if they differ.
func otherLabels(staged, asked string) string {
	if staged == asked {
		return ""
	}
	return fmt.Sprintf(", SELinux labels %q, asked for with %q", staged, asked)
}

// placeOf returns where a recorded volume shows.
func placeOf(staged ledger.Staging) string {
	if staged.Type == backends.Block {
		return devicePlace(staged.Path)
	}
	return staged.Path
}

// compareMount decides whether the mount at the place is the volume.
func (st *staging) compareMount(ctx context.Context, state mount.State) error {
	right, err := st.recipe.holds(st, ctx, state)
	switch old := st.record.Staged; {
	case err != nil:
		return err
	case !right && old != nil && !old.Pending && shows(state, *old) && !st.published(ctx):
		// The mount is what was staged, and the volume is elsewhere by now.
		st.service.log.WarnContext(ctx, "what is mounted is no longer the volume and is taken down", "volume",
			st.request.Volume, "path", st.recipe.place)
		return st.service.clear(ctx, st.request.Volume, *old, nil)
	case !right:
		return backends.Errorf(backends.Exists,
			"something else is mounted at %s (device %d:%d, inode %d): unmount it, or choose another path",
			st.recipe.place, unix.Major(state.Dev), unix.Minor(state.Dev), state.Ino)
	}
	if st.record.Staged == nil && state.ReadOnly != st.want.ReadOnly {
		return backends.Errorf(backends.Exists,
			"it is mounted at %s already with read-only %t, and asked for with %t: unstage it first", st.recipe.place,
			state.ReadOnly, st.want.ReadOnly)
	}
	if st.request.Use.Type == backends.Mount {
		err := errors.Join(compareOptions(st.recipe.place, st.request.MountOptions), st.compareGroup(ctx))
		if err != nil {
			return err
		}
	}
	st.present = true
	st.noteRoot(state)
	return nil
}

// compareGroup keeps the files with the group that they belong to. While a pod may use them, no other group gets them.
// A request without a group does not take them from a group. Kinds: Exists.
func (st *staging) compareGroup(ctx context.Context) error {
	old := st.record.Staged
	if old == nil || old.Group == "" || old.Group == st.want.Group || !st.service.ownGroups {
		return nil
	}
	_, live := st.service.livePublications(ctx, st.record)
	switch {
	case st.want.Group == "" && (len(live) > 0 || !old.Pending):
		st.want.Group = old.Group
	case st.want.Group != "" && len(live) > 0:
		return backends.Errorf(backends.Exists,
			"it is published at %s, its files belong to group %s, and group %s is asked for: "+
				"give the pods the same fsGroup, or stop those that use the volume", strings.Join(live, ", "), old.Group,
			st.want.Group)
	}
	return nil
}

// published reports whether the volume is mounted at a target.
func (st *staging) published(ctx context.Context) bool {
	_, live := st.service.livePublications(ctx, st.record)
	return len(live) > 0
}

// checkDirectory checks that the staging directory exists and that nothing is mounted on it. state is that of the
// place.
func (st *staging) checkDirectory(ctx context.Context, state mount.State) (err error) {
	if st.recipe.place != st.request.StagingPath {
		state, err = mount.Inspect(ctx, st.request.StagingPath)
	}
	switch {
	case err != nil:
		return err
	case !state.Exists || !state.Dir:
		return backends.Errorf(backends.Invalid, "the staging path %s must be an existing directory", st.request.StagingPath)
	case state.Mounted:
		return backends.Errorf(backends.Exists, "something is mounted at %s: unmount it, or choose another path",
			st.request.StagingPath)
	}
	return nil
}

// noteRoot notes the root of what is mounted at the place.
func (st *staging) noteRoot(state mount.State) { st.want.Root = rootOf(state) }

func rootOf(state mount.State) ledger.Root { return ledger.Root{Dev: state.Dev, Ino: state.Ino} }

// holdsDirectory compares the mount with the directory itself.
func (st *staging) holdsDirectory(_ context.Context, state mount.State) (bool, error) {
	return st.want.Root == rootOf(state), nil
}

// holdsNode compares the bound device node with the devices of the source.
func (st *staging) holdsNode(ctx context.Context, state mount.State) (bool, error) {
	return st.isOf(ctx, state.Rdev)
}

// isOf reports whether the device of that number is one of the volume's. If the storage's name of the device is
// missing, that is decided only once the recorded device is gone: udev replaces links, and a device without a link is
// still the volume's. Kinds: Unavailable until then.
func (st *staging) isOf(ctx context.Context, number uint64) (bool, error) {
	devices, err := devicesOf(ctx, st.want.Source)
	if err != nil {
		return false, err
	}
	old := st.record.Staged
	if len(devices) == 0 && !st.want.Source.Image && old != nil && isThere(old.Source) {
		return false, backends.Errorf(backends.Unavailable,
			"cannot tell whether the mount at %s is the volume: there is no device %s, but %s, from which it was staged, "+
				"is still there: wait until udev has named the device again, or unstage the volume", st.recipe.place,
			st.want.Source.Path, old.Source.DevicePath)
	}
	return slices.Contains(slices.Collect(maps.Values(devices)), number), nil
}

// isThere reports whether the recorded device may still exist.
func isThere(source ledger.Source) bool {
	return source.DevicePath != "" && !device.Gone(source.Major, source.Minor) && !isAnother(source.DevicePath, source)
}

// holdsDevice compares the device of the mounted filesystem with the devices of the source. A btrfs has a device number
// of its own, so the mount table is needed.
func (st *staging) holdsDevice(ctx context.Context, state mount.State) (bool, error) {
	if right, err := st.isOf(ctx, state.Dev); err != nil || right {
		return right, err
	}
	shown, ok, err := mountedAt(st.recipe.place)
	if err != nil || !ok {
		return false, err
	}
	return st.isOf(ctx, shown.Device())
}

// mountedAt reads the mount table for what is mounted at a path.
func mountedAt(path string) (mount.Entry, bool, error) {
	table, err := mount.ReadTable()
	if err != nil {
		return mount.Entry{}, false, err
	}
	return table.At(path)
}

// devicesOf returns the block devices of a recorded source at present: their paths and numbers.
func devicesOf(ctx context.Context, source ledger.Source) (map[string]uint64, error) {
	paths := []string{source.Path}
	if source.Image {
		loops, err := device.FindLoops(ctx, source.Path)
		if err != nil {
			return nil, err
		}
		paths = loops
	}
	devices := map[string]uint64{}
	for _, path := range paths {
		var stat unix.Stat_t
		err := unix.Stat(path, &stat)
		switch {
		case errors.Is(err, unix.ENOENT):
		case err != nil:
			return nil, backends.Errorf(backends.Unavailable, "cannot look at device %s: %w", path, err)
		case stat.Mode&unix.S_IFMT == unix.S_IFBLK:
			devices[path] = stat.Rdev
		}
	}
	return devices, nil
}

// holdsExport compares the mount with the record. Without a record it needs the mount table to tell what was mounted.
func (st *staging) holdsExport(_ context.Context, state mount.State) (bool, error) {
	if old := st.record.Staged; old != nil && !old.Pending && old.Source == st.want.Source {
		return old.Root == rootOf(state), nil
	}
	shown, ok, err := mountedAt(st.recipe.place)
	return ok && shown.Source == st.want.Source.Path && shown.FSType == st.want.Source.FSType, err
}

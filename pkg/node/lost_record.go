package node

import (
	"context"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node/device"
	"github.com/stowage-csi/stowage/pkg/node/ledger"
	"github.com/stowage-csi/stowage/pkg/node/mount"
)

// A lost record no longer says where a volume is published. The mount table does: every mount that shows what the
// volume's staging path shows, or what its backend names as the volume, is one of its publications.

// checkShown refuses to unstage a volume that has no staging record and shows elsewhere, if unstaging frees something.
func (un *unstaging) checkShown(ctx context.Context) error {
	if un.record.Staged != nil {
		return nil
	}
	found, err := findShown(ctx, un.path, un.staged.Source)
	if err != nil {
		return err
	}
	elsewhere := un.service.ofNoOther(un.record.Volume, found.elsewhere)
	switch {
	case len(elsewhere) > 0 && (un.service.frees(un.staged.Source) || found.hasDevice(un.path)):
		return backends.Errorf(backends.InUse, "it is still published at %s: unpublish it first",
			strings.Join(elsewhere, ", "))
	case len(elsewhere) > 0:
		un.service.log.WarnContext(ctx,
			"the record of a volume was lost; what it shows elsewhere may be another's, and stays",
			"volume", un.record.Volume, "paths", elsewhere)
	}
	if found.place == un.path {
		un.noteDevice(ctx, found.mount)
	}
	return nil
}

// noteDevice records the device of the filesystem at the staging path. After the unmount nobody can tell it, and the
// filesystem may still be mounted in another mount namespace; then this call fails, and the next one must know the
// device too. The loop device of an image is found by the image.
func (un *unstaging) noteDevice(ctx context.Context, shown mount.Entry) {
	const loopMajor = 7
	number, source := shown.Device(), &un.staged.Source
	major := unix.Major(number)
	if major == 0 || shown.Root != "/" || source.Image || source.Kind == ledger.Directory ||
		source.Kind == "" && major == loopMajor {
		return
	}
	un.staged.Type, un.staged.Pending = backends.Mount, true
	source.Kind, source.DevicePath, source.Major, source.Minor = ledger.Device, shown.Source, major, unix.Minor(number)
	if found, sequence := device.Numbers(shown.Source); found == number {
		source.Sequence = sequence
	}
	record := un.record.WithStaging(&un.staged)
	if err := un.service.ledger.Put(record); err != nil {
		un.service.log.WarnContext(ctx, "cannot note what is unstaged", "volume", un.record.Volume, "error", err)
		return
	}
	un.record = record
}

// adoptPublications adds the other places where a volume without a staging record shows to its record, whether or not
// it is at its own place. A publication that is recorded stays as it is.
func (st *staging) adoptPublications(ctx context.Context) error {
	found, err := findShown(ctx, st.want.Path, st.want.Source)
	if err != nil {
		return err
	}
	if !st.present && found.place != "" { // as a raw device, beside the place of a filesystem
		return backends.Errorf(backends.Exists, "it is staged already, and shows at %s: unstage it first", found.place)
	}
	for _, target := range st.service.ofNoOther(st.request.Volume, found.elsewhere) {
		state, err := mount.Inspect(ctx, target)
		if err != nil && !mount.Corrupted(err) {
			return err
		}
		if err := st.checkAdoptable(ctx, target, state); err != nil {
			return err
		}
		if before, recorded := st.record.Publication(target); recorded && !before.Adopted {
			continue
		}
		st.record = st.record.WithPublication(ledger.Publication{Target: target, Mode: st.want.Mode,
			ReadOnly: state.ReadOnly, Adopted: true})
		st.service.log.WarnContext(ctx, "the record of a volume was lost; it counts as published where it shows", "volume",
			st.request.Volume, "path", target)
	}
	return nil
}

// ofNoOther removes the paths that are recorded for another volume: two volumes may be the same export.
func (s *Service) ofNoOther(volume string, paths []string) []string {
	return slices.DeleteFunc(paths, func(path string) bool {
		owner := s.ledger.Owner(path)
		return owner != "" && owner != volume
	})
}

// showing is where a volume without a record shows.
type showing struct {
	place     string      // in the staging path; empty if nothing shows there
	mount     mount.Entry // at the place
	elsewhere []string
}

// hasDevice reports whether what shows in the staging path is a block device or on one.
func (s showing) hasDevice(stagingPath string) bool {
	return s.place == devicePlace(stagingPath) || s.mount.Info != nil && unix.Major(s.mount.Device()) != 0
}

// showsRemote reports whether the filesystem mounted at a staging path is on no block device. Only the kernel knows
// such a filesystem, and its server may be dead.
func showsRemote(ctx context.Context, path string) (bool, error) {
	place, err := stagedPlace(ctx, path)
	if err != nil || place != path {
		return false, err
	}
	shown, ok, err := mountedAt(path)
	return ok && unix.Major(shown.Device()) == 0, err
}

// findShown looks for a volume at its staging path, and for the same mount or the volume's source everywhere else.
func findShown(ctx context.Context, stagingPath string, source ledger.Source) (found showing, err error) {
	if found.place, err = stagedPlace(ctx, stagingPath); err != nil {
		return found, err
	}
	var devices map[string]uint64
	if source.Kind == ledger.Device {
		if devices, err = devicesOf(ctx, source); err != nil {
			return found, err
		}
	}
	paths := slices.Collect(maps.Keys(devices))
	// A directory that shows at its place is not looked up by its path, because its server may be dead.
	if source.Kind == ledger.Directory && found.place == "" {
		paths = append(paths, source.Path)
	}
	if found.place == "" && len(paths) == 0 {
		return found, nil
	}
	table, err := mount.ReadTable()
	if err != nil {
		return found, err
	}
	parts, err := partsOf(table, paths, devices)
	if err != nil {
		return found, err
	}
	if found.place != "" {
		shown, ok, err := table.At(found.place)
		if err != nil || !ok {
			return found, err
		}
		found.mount = shown
		parts = append(parts, table.Shown(shown, source.Path))
	}
	found.elsewhere = table.Where(parts...)
	return found, nil
}

// stagedPlace returns where in a staging path a volume is mounted; an empty string if nothing is mounted there, or the
// mount is corrupted.
func stagedPlace(ctx context.Context, path string) (string, error) {
	for _, place := range []string{path, devicePlace(path)} {
		mounted, err := mount.Mounted(ctx, place)
		switch {
		case mount.Corrupted(err):
			return "", nil
		case err != nil:
			return "", err
		case mounted:
			return place, nil
		}
	}
	return "", nil
}

// partsOf returns what is at the paths, and the filesystems on the devices.
func partsOf(table mount.Table, paths []string, devices map[string]uint64) (parts []mount.Part, err error) {
	for _, path := range paths {
		part, err := table.Of(path)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	for _, number := range devices {
		parts = append(parts, table.OnDevice(number))
	}
	return parts, nil
}

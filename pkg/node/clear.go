package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/failure"
	"github.com/stowage-csi/stowage/pkg/node/device"
	"github.com/stowage-csi/stowage/pkg/node/filesystem"
	"github.com/stowage-csi/stowage/pkg/node/holders"
	"github.com/stowage-csi/stowage/pkg/node/ledger"
	"github.com/stowage-csi/stowage/pkg/node/mount"
	"github.com/stowage-csi/stowage/pkg/safepath"
)

// takeDownTime bounds the cleanup after a failed call, whose own time may be over.
const takeDownTime = 15 * time.Second

// takeDown removes what this call made. What cannot be removed stays recorded, so that the next call or an Unstage
// finds it.
func (st *staging) takeDown(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), takeDownTime)
	defer cancel()
	st.closeDevice()
	s := st.service
	_, live := s.livePublications(ctx, st.record)
	err := s.clear(ctx, st.request.Volume, st.want, live)
	if err == nil {
		err = errors.Join(s.forget(ctx, st.record.WithStaging(nil)), st.forgetWork(ctx))
	}
	if err != nil {
		s.log.WarnContext(ctx, "what a failed staging made could not be taken down; it stays recorded", "volume",
			st.request.Volume, "path", st.request.StagingPath, "error", err)
	}
	return err
}

// giveBack tells the backend that the volume is not in use, as before this call, which has made nothing. After a final
// refusal nobody unstages the volume.
func (st *staging) giveBack(ctx context.Context) error {
	if st.present { // It is mounted, whatever the backend noted.
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), takeDownTime)
	defer cancel()
	err := st.service.features.Release.Release(ctx, st.request.Volume)
	if backends.Is(err, backends.NotFound) {
		return nil
	}
	return err
}

// forget replaces the record of a volume that is no longer staged, and tells the backend.
func (s *Service) forget(ctx context.Context, record ledger.Record) error {
	if s.features.Release != nil && len(record.Published) == 0 {
		if err := s.features.Release.Release(ctx, record.Volume); err != nil && !backends.Is(err, backends.NotFound) {
			return err
		}
	}
	s.drop(ctx, record)
	return nil
}

// drop records that a mount or a device of a volume was taken down. A record that cannot be written is only logged:
// after a restart it claims too much until the kernel is asked.
func (s *Service) drop(ctx context.Context, record ledger.Record) {
	if err := s.ledger.Drop(record); err != nil {
		s.log.WarnContext(ctx,
			"what was taken down stays in the record of a volume, which cannot be changed; make room for the state directory, "+
				"or make it writable",
			"volume", record.Volume, "error", err)
	}
}

// clear unmounts a volume from its staging path and frees its device. Parts that are gone already are no error, so that
// clear also removes what an earlier call left. A raw device that shows at a target stays with the volume: a bind mount
// of its node does not claim it. The next image to be attached would get the number of a loop device under the pod, and
// a disk could be formatted or write-protected under it.
//
// Kinds: InUse when something still uses the volume; Unavailable when the context ends first.
func (s *Service) clear(ctx context.Context, volume string, staged ledger.Staging, published []string) error {
	if err := awaitGrowth(ctx, staged); err != nil {
		return err
	}
	protected := protects(ctx, staged) // cannot be told after the unmount
	if err := mount.Unmount(ctx, staged.Path); err != nil {
		return s.namingHoldersOf(ctx, err, staged.Path)
	}
	// Only now: while a filesystem is mounted at the path, a file of that name belongs to its user.
	bound, err := s.unbindDevice(ctx, devicePlace(staged.Path))
	if err != nil {
		return err
	}
	if len(published) > 0 && staged.Type == backends.Block {
		return backends.Errorf(backends.InUse, "it is still published at %s, and its device stays: unpublish it first",
			strings.Join(published, ", "))
	}
	if err := s.freeDevice(ctx, volume, staged, bound); err != nil {
		return err
	}
	if protected {
		unprotect(staged)
	}
	return nil
}

// awaitGrowth waits while the filesystem mounted at the staging path is being grown, which keeps the mount in use. It
// fails if a growth that was given up has not ended.
func awaitGrowth(ctx context.Context, staged ledger.Staging) error {
	if staged.Type != backends.Mount || staged.Source.DevicePath == "" {
		return nil
	}
	return filesystem.Grown(ctx, staged.Path, staged.Source.DevicePath)
}

// unbindDevice unmounts and removes the file that shows a device, and returns the number of the device. On a disk that
// takes no writes the file stays. It is empty, and staging uses it again; the device must be freed all the same.
func (s *Service) unbindDevice(ctx context.Context, place string) (rdev uint64, err error) {
	state, err := mount.Inspect(ctx, place)
	if err != nil || !state.Exists || state.Dir {
		return 0, err
	}
	if err := mount.Unmount(ctx, place); err != nil {
		return 0, s.namingHoldersOf(ctx, err, place)
	}
	err = removeEmpty(place)
	if failure.IsAny(err, unix.EROFS, unix.ENOSPC, unix.EDQUOT, unix.EIO) {
		s.log.WarnContext(ctx, "the empty file that showed a device cannot be removed, and stays", "path", place, "error",
			err)
		err = nil
	}
	return state.Rdev, err
}

// removeEmpty removes the directory or file that a mount was on. It keeps a directory or file that holds data, and
// never removes recursively. A missing path is no error.
//
// Kinds: InUse for a directory with something in it or a file with data; Invalid for anything else.
func removeEmpty(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return backends.Errorf(backends.Unavailable, "cannot look at %s: %w", path, err)
	case info.Mode().IsRegular() && info.Size() > 0:
		return backends.Errorf(backends.InUse,
			"nothing is mounted at %s and the file holds %d bytes of data: it is not removed", path, info.Size())
	case !info.IsDir() && !info.Mode().IsRegular():
		return backends.Errorf(backends.Invalid, "%s is neither a directory nor a file (%s): it is not removed", path,
			info.Mode().Type())
	}
	target, err := safepath.OpenTarget(path)
	if backends.Is(err, backends.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = target.Close() }() // opened for looking only
	return target.Remove()
}

// freeDevice detaches the image of a volume, or checks that nobody else has its device mounted. bound is the number of
// the device that was bound until now, if any.
func (s *Service) freeDevice(ctx context.Context, volume string, staged ledger.Staging, bound uint64) error {
	source := staged.Source
	if bound == 0 && source.DevicePath != "" {
		bound = unix.Mkdev(source.Major, source.Minor)
	}
	var err error
	switch {
	case source.Image:
		err = s.detachImage(ctx, source, bound)
	case source.Kind == ledger.Device:
		err = s.checkUnclaimed(source)
	case source.Kind == "" && holdsFile(bound):
		err = s.detachDeleted(ctx, volume, bound)
	}
	return s.namingHolders(ctx, err, holders.OfDevice(source.DevicePath, unix.Major(bound), unix.Minor(bound)))
}

// detachImage frees the loop devices of an image. number is that of its known loop device, 0 if unknown. If that device
// still holds the image, no other is asked first. A person may also have attached the image to another one, and mounted
// that. If it holds another file, all are searched. If it holds none, all are asked only if one shows the image's name,
// because the image's server may not answer any more. Without a number, all are always asked.
func (s *Service) detachImage(ctx context.Context, source ledger.Source, number uint64) error {
	if number != 0 && holdsFile(number) {
		sequence := source.Sequence
		if number != unix.Mkdev(source.Major, source.Minor) {
			sequence = 0 // that of another device
		}
		err := device.DetachFrom(ctx, source.Path, unix.Major(number), unix.Minor(number), sequence, s.detachTime(ctx))
		if err != nil {
			return err
		}
	}
	if number != 0 {
		if named, err := device.Named(source.Path); err != nil || !named {
			return err
		}
	}
	return device.Detach(ctx, source.Path, s.detachTime(ctx))
}

// detachDeleted detaches the image of a volume whose record is lost and which was deleted with its image. The number of
// its loop device may be that of another file's device by now.
func (s *Service) detachDeleted(ctx context.Context, volume string, number uint64) error {
	major, minor := unix.Major(number), unix.Minor(number)
	err := device.DetachDeleted(ctx, volume, major, minor, s.detachTime(ctx))
	if err == nil && holdsFile(number) {
		s.log.WarnContext(ctx, "the record of a raw volume was lost; nothing proves that its loop device still holds its "+
			"image, and it stays: if nothing uses it, detach it (losetup --detach)",
			"volume", volume, "device", fmt.Sprintf("/dev/loop%d", minor))
	}
	return err
}

// holdsFile reports whether the loop device of that number may hold a file (sysfs(5)).
func holdsFile(number uint64) bool {
	name, err := os.ReadFile(fmt.Sprintf("/sys/dev/block/%d:%d/loop/backing_file", unix.Major(number), unix.Minor(number)))
	gone := errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENXIO)
	return !gone && (err != nil || len(name) > 0)
}

// checkUnclaimed refuses while a device is still in use: it is mounted somewhere, perhaps in another mount namespace;
// it is mapped, as a raw device is by dm-crypt or LVM; or a tool of a killed process writes to it. A mount or a mapping
// claims the device, and the kernel then refuses any other claim (open(2), O_EXCL). A tool holds the device's lock.
func (s *Service) checkUnclaimed(source ledger.Source) error {
	path := source.DevicePath
	if path == "" { // an interrupted call did not record more
		path = source.Path
	}
	var stat unix.Stat_t
	if err := unix.Stat(path, &stat); err == nil && source.DevicePath != "" &&
		stat.Rdev != unix.Mkdev(source.Major, source.Minor) {
		return nil // gone, and its name belongs to another device
	}
	if isAnother(path, source) {
		return nil // gone, and its number belongs to another device as well
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_EXCL|unix.O_CLOEXEC, 0)
	switch {
	case err == nil:
		defer func() { _ = unix.Close(fd) }() // opened only to check
		return checkUnlocked(fd, path)
	case errors.Is(err, unix.EBUSY) && source.DevicePath == "" && s.isOfAnother(path):
		return nil // gone before it was recorded
	case errors.Is(err, unix.EBUSY):
		return backends.Errorf(backends.InUse, "%s is still mounted somewhere else, perhaps in a container, or mapped "+
			"(as by dm-crypt or LVM), or a tool works on it: stop what uses it", path)
	case saysNothing(err):
		return backends.Errorf(backends.Unavailable, "cannot tell whether %s is still mounted somewhere else: %w", path, err)
	}
	return nil // The kernel checks for a claim first: there is no claim, or no device.
}

// saysNothing reports whether opening a device failed because of this process or this node.
func saysNothing(err error) bool {
	return slices.ContainsFunc([]error{unix.EMFILE, unix.ENFILE, unix.ENOMEM, unix.EINTR, unix.EACCES, unix.EPERM},
		func(own error) bool { return errors.Is(err, own) })
}

// isOfAnother reports whether the device at a path certainly belongs to a volume that has recorded it, by its number
// and sequence number. It is for a staging that was interrupted before it could record either.
func (s *Service) isOfAnother(path string) bool {
	number, sequence := device.Numbers(path)
	return sequence != 0 && slices.ContainsFunc(s.ledger.Records(), func(r ledger.Record) bool {
		return r.Staged != nil && r.Staged.Source.DevicePath != "" && r.Staged.Source.Sequence == sequence &&
			unix.Mkdev(r.Staged.Source.Major, r.Staged.Source.Minor) == number
	})
}

// isAnother reports whether the device at a path certainly is not the recorded one, although it has the same number. A
// sequence number that is unknown, now or when the device was recorded, proves nothing.
func isAnother(path string, source ledger.Source) bool {
	if source.Sequence == 0 {
		return false
	}
	_, sequence := device.Numbers(path)
	return sequence != 0 && sequence != source.Sequence
}

// checkUnlocked refuses while a tool works on an open device.
func checkUnlocked(fd int, path string) error {
	err := unix.Flock(fd, unix.LOCK_SH|unix.LOCK_NB) // goes with the descriptor
	if errors.Is(err, unix.EWOULDBLOCK) {
		return backends.Errorf(backends.Busy, "%s is locked: a tool that was started before still works on it", path)
	}
	return nil // another error says nothing about tools
}

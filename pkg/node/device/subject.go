package device

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/loops"
	"github.com/stowage-csi/stowage/pkg/rawfile"
)

// judge decides whether a loop device holds the file in question. It gets the open node: while that is open, the kernel
// does not free the device, and so does not give it another file. Without an open node a number, or a name in sysfs,
// proves nothing: any process that had the device open for an instant may free it by its close, and then it may be
// reused.
type judge func(node *os.File, status *unix.LoopInfo64) (bool, error)

// openIf opens the device if mine accepts what it holds; a nil file otherwise.
func (l loopDevice) openIf(mine judge) (*os.File, *unix.LoopInfo64, error) {
	node, status, err := l.open(true)
	if err != nil || node == nil {
		return nil, nil, err
	}
	ok, err := mine(node, status)
	if err != nil || !ok {
		_ = node.Close() // only inspected
		return nil, nil, err
	}
	return node, status, nil
}

// subject is an image whose loop devices are searched for.
type subject struct {
	path  string
	image *located // held open, so that its inode is not reused; nil if no file has the name
}

// subjectOf finds an image, which may be gone. Kinds: as locateImage, without NotFound.
func subjectOf(path string) (subject, error) {
	image, err := locateImage(path)
	if err != nil && !backends.Is(err, backends.NotFound) {
		return subject{}, err
	}
	return subject{path, image}, nil
}

// gone returns the kernel's name for a deleted file of the image's name.
func (s subject) gone() string {
	return filepath.Join(resolved(filepath.Dir(s.path)), filepath.Base(s.path)) + loops.Deleted
}

// resolved resolves the symlinks in a directory as far as it exists: the last parts may be gone with the image.
func resolved(dir string) string {
	if plain, err := filepath.EvalSymlinks(dir); err == nil || dir == filepath.Dir(dir) {
		return plain
	}
	return filepath.Join(resolved(filepath.Dir(dir)), filepath.Base(dir))
}

func (s subject) close() {
	if s.image != nil {
		_ = s.image.Close() // O_PATH
	}
}

// held is the judge for the image, and for a deleted image of its name.
func (s subject) held(node *os.File, status *unix.LoopInfo64) (bool, error) {
	if s.image != nil && s.image.holds(status) {
		return true, nil
	}
	name, err := backingFile(node)
	if err != nil || name != s.gone() {
		return false, err
	}
	return isDeleted(name, status)
}

// sameSequence is the judge for what a loop device has held since it got the sequence number; 0 matches nothing.
func sameSequence(sequence uint64) judge {
	return func(node *os.File, _ *unix.LoopInfo64) (bool, error) {
		if sequence == 0 {
			return false, nil
		}
		now, err := Sequence(node)
		return now == sequence, err
	}
}

// either is the judge that accepts what one of two judges accepts.
func either(one, other judge) judge {
	return func(node *os.File, status *unix.LoopInfo64) (bool, error) {
		if ok, err := one(node, status); ok || err != nil {
			return ok, err
		}
		return other(node, status)
	}
}

// holdsDeleted is the judge for a deleted file of a volume.
func holdsDeleted(volume string) judge {
	return func(node *os.File, status *unix.LoopInfo64) (bool, error) {
		name, err := backingFile(node)
		if err != nil || !isDeletedOf(name, volume) {
			return false, err
		}
		return isDeleted(name, status)
	}
}

// isDeleted reports whether the file that a loop device holds is deleted, as the kernel's name for it says. A file may
// really have a name with that end. While the device is open, no other file gets its inode. Kinds: Unavailable.
func isDeleted(name string, status *unix.LoopInfo64) (bool, error) {
	var stat unix.Stat_t
	err := unix.Lstat(name, &stat)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		return true, nil
	case err != nil:
		return false, backends.Errorf(backends.Unavailable, "cannot tell whether %q is the name of a deleted file: %w", name,
			err)
	}
	return stat.Dev != status.Device || stat.Ino != status.Inode, nil
}

// isDeletedOf reports whether the kernel's name is that of a deleted file which belonged to the volume: the file or its
// directory is named after the handle. Any other deleted file may be all that is left of another's data.
func isDeletedOf(name, volume string) bool {
	path, deleted := strings.CutSuffix(name, loops.Deleted)
	isVolume := func(part string) bool { return part == volume || strings.HasPrefix(part, volume+".") }
	return deleted && (isVolume(filepath.Base(path)) || isVolume(filepath.Base(filepath.Dir(path))))
}

// backingFile returns the kernel's name for the file that an open loop device holds.
func backingFile(node *os.File) (string, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(int(node.Fd()), &stat); err != nil {
		return "", backends.Errorf(backends.Unavailable, "looking at %s: %w", node.Name(), err)
	}
	name, err := rawfile.Read(filepath.Join(sysfsDir(unix.Major(stat.Rdev), unix.Minor(stat.Rdev)), "loop/backing_file"))
	if err != nil {
		return "", backends.Errorf(backends.Unavailable, "asking %s for the name of its file: %w", node.Name(), err)
	}
	return strings.TrimSuffix(string(name), "\n"), nil
}

// detach frees the loop devices that hold the image.
func (s subject) detach(ctx context.Context, patience time.Duration) error {
	found, err := s.loops(ctx)
	if err != nil {
		return err
	}
	for _, loop := range found {
		holds, err := loop.unchanged()
		if err != nil {
			return err
		}
		if !holds {
			continue
		}
		if _, err := loop.detach(ctx, s.held, patience); err != nil {
			return backends.Errorf(backends.KindOf(err), "detaching it: %w", err)
		}
	}
	return nil
}

package device

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/loops"
	"github.com/stowage-csi/stowage/pkg/rawfile"
)

// judge decides whether what a loop device holds is what is looked for. It gets the open node: for as long as that is
// open the kernel does not free the device, and so gives it no other file. Before that a number, or a name in sysfs,
// proves nothing, for whoever opened the device for an instant may free it with his close, and then it is anybody's.
type judge func(node *os.File, status *unix.LoopInfo64) (bool, error)

// openIf opens the device if it holds what is looked for; a nil file otherwise.
func (l loopDevice) openIf(mine judge) (*os.File, *unix.LoopInfo64, error) {
	node, status, err := l.open(true)
	if err != nil || node == nil {
		return nil, nil, err
	}
	ok, err := mine(node, status)
	if err != nil || !ok {
		_ = node.Close() // only looked at
		return nil, nil, err
	}
	return node, status, nil
}

// subject is an image whose loop devices are looked for.
type subject struct {
	path  string
	image *located // held open, so that its inode becomes no other file's; nil when there is no file of the name
}

// subjectOf finds an image, which need not be there any more. Kinds: as locateImage, without NotFound.
func subjectOf(path string) (subject, error) {
	image, err := locateImage(path)
	if err != nil && !backends.Is(err, backends.NotFound) {
		return subject{}, err
	}
	return subject{path, image}, nil
}

// gone is how the kernel calls a file of the image's name that was deleted.
func (s subject) gone() string {
	return filepath.Join(resolved(filepath.Dir(s.path)), filepath.Base(s.path)) + loops.Deleted
}

// resolved is a directory without symlinks, as far as there is one: the last of them may have gone with the image.
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

// held is the judge for the image, and for one that was deleted under its name.
func (s subject) held(node *os.File, status *unix.LoopInfo64) (bool, error) {
	if s.image != nil && s.image.holds(status) {
		return true, nil
	}
	name, err := backingFile(node)
	return name == s.gone(), err
}

// sameSequence is the judge for what a loop device has held since it had the sequence number; 0 is nobody's.
func sameSequence(sequence uint64) judge {
	return func(node *os.File, _ *unix.LoopInfo64) (bool, error) {
		if sequence == 0 {
			return false, nil
		}
		now, err := Sequence(node)
		return now == sequence, err
	}
}

// either is the judge for what one of two is for.
func either(one, other judge) judge {
	return func(node *os.File, status *unix.LoopInfo64) (bool, error) {
		if ok, err := one(node, status); ok || err != nil {
			return ok, err
		}
		return other(node, status)
	}
}

// holdsDeleted is the judge for any file that was deleted.
func holdsDeleted(node *os.File, _ *unix.LoopInfo64) (bool, error) {
	name, err := backingFile(node)
	return strings.HasSuffix(name, loops.Deleted), err
}

// backingFile is the kernel's name for the file that an open loop device holds.
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

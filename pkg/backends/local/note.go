package local

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// note is a mark on a volume that holds until it is cleared or the machine is started anew. It is a symbolic
// link whose target is the ID of the boot: making one is a single system call, so that there is never half a
// note, and no sync is needed, because what it tells of ends with the boot as well.
type note string

const (
	inUseNote  note = "in-use" // the volume is staged
	frozenNote note = "frozen" // the filesystem on the image is being frozen
)

// set makes the note in a folder, unless it is there. It replaces one of an earlier boot, which start-up could not
// remove.
func (n note) set(dir, boot string) error {
	err := os.Symlink(boot, filepath.Join(dir, string(n)))
	if !errors.Is(err, os.ErrExist) {
		return err
	}
	if held, err := n.holds(dir, boot); held || err != nil {
		return err
	}
	if err := n.clear(dir); err != nil {
		return err
	}
	return os.Symlink(boot, filepath.Join(dir, string(n)))
}

// holds reports whether there is a note of this boot.
func (n note) holds(dir, boot string) (bool, error) {
	target, err := os.Readlink(filepath.Join(dir, string(n)))
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.EINVAL) { // EINVAL: it is not a link, so not a note.
		return false, nil
	}
	return err == nil && target == boot, err
}

// clear removes the note; it is no error when there is none, which a filesystem that cannot be written to does not
// tell. What has its name and is no link is no note.
func (n note) clear(dir string) error {
	path := filepath.Join(dir, string(n))
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() != os.ModeSymlink {
		return nil
	}
	err := os.Remove(path)
	if err == nil {
		return nil
	}
	if _, gone := os.Lstat(path); errors.Is(gone, os.ErrNotExist) {
		return nil
	}
	return err
}

// clear removes a note of the volume. That there is none is believed in a pool only that can be read: the folder of one
// that is lost has no notes, and has them all once it is back.
func (v *volume) clear(n note) error {
	if err := n.clear(v.dir); err != nil {
		return v.pool.explain(err)
	}
	if problem := v.pool.problem(); problem != nil && !problem.readable {
		return backends.Errorf(backends.Unavailable, "%s", problem.message)
	}
	return nil
}

// bootID tells this boot from all others (proc(5), /proc/sys/kernel/random/boot_id).
func bootID() (string, error) {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(data)), err
}

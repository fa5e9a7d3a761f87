package local

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// note is a mark on a volume that is valid until it is cleared or the machine reboots. It is a symbolic link to the ID
// of the boot. Creating it is a single system call, so a note is never half written. It needs no sync, because its
// subject ends with the boot as well.
type note string

const (
	inUseNote  note = "in-use" // the volume is staged
	frozenNote note = "frozen" // the filesystem on the image is being frozen
)

// set creates the note in a folder, unless it exists. It replaces a note of an earlier boot that start-up could not
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

// holds reports whether the folder has the note of this boot.
func (n note) holds(dir, boot string) (bool, error) {
	target, err := os.Readlink(filepath.Join(dir, string(n)))
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.EINVAL) { // EINVAL: it is no link, so no note.
		return false, nil
	}
	return err == nil && target == boot, err
}

// clear removes the note. A missing note is no error, even on a filesystem that is not writable. A file of that name
// that is no link is not a note.
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

// clear removes a note of the volume. It trusts that there is no note only if the pool can be read: the folder of a
// lost pool shows no notes, but has all of them when the pool is back.
func (v *volume) clear(n note) error {
	if err := n.clear(v.dir); err != nil {
		return v.pool.explain(err)
	}
	if problem := v.pool.problem(); problem != nil && !problem.readable {
		return backends.Errorf(backends.Unavailable, "%s", problem.message)
	}
	return nil
}

// bootID returns the ID of this boot (proc(5), /proc/sys/kernel/random/boot_id).
func bootID() (string, error) {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(data)), err
}

package share

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// At returns the path of an entry of the Home, from the share's root.
func At(folder, name string) string { return path.Join(HomeName, folder, name) }

// Read returns the contents of a file. Kinds: as readSmall; Unavailable beyond the budget.
func (h *Home) Read(folder, name string) (data []byte, err error) {
	path := At(folder, name)
	err = h.names.read(func() (err error) { data, err = readSmall(h.dir, path); return err }, path)
	if spent := h.Charge(len(data)); spent != nil {
		return nil, spent
	}
	return data, err
}

// Look returns the server's attributes of a file.
func (h *Home) Look(folder, name string) (stat unix.Statx_t, err error) {
	path := At(folder, name)
	err = h.names.read(func() (err error) { stat, err = h.files.Lstat(path, 0); return err }, path)
	return stat, err
}

// rename, remove and link remove a name, or put another file in its place, while this process does not have the file
// open, and does not read its attributes. The kernel's NFS client keeps a file in use under another name (".nfs..."),
// and renames it by a separate request first: if the server does not answer the next one, or refuses it, the name is
// gone for all clients. Also, a file without its name must not have another one, because a link could then publish it.
func (h *Home) rename(from, to string) error {
	return h.names.change(func() error { return h.files.Rename(from, to) }, from, to)
}

func (h *Home) remove(path string) error {
	return h.names.change(func() error { return h.files.Remove(path) }, path)
}

// link holds the name of an existing file for a moment, as a process does that has it open.
func (h *Home) link(from, to string) error {
	return h.names.change(func() error { return h.files.Link(from, to) }, from, to)
}

// WriteNew creates a file with the data, completely or not at all. It fails with fs.ErrExist if there is one, even if
// two machines create it at once: a link is exclusive on every version of NFS.
func (h *Home) WriteNew(folder, name string, data []byte) error {
	return h.write(folder, name, data, func(draft, target string) error {
		return errors.Join(h.link(draft, target), h.remove(draft))
	})
}

// Replace replaces a file by one with the data.
func (h *Home) Replace(folder, name string, data []byte) error {
	return h.write(folder, name, data, h.rename)
}

// write creates a draft, which is on the server's disk, and calls place to move it.
func (h *Home) write(folder, name string, data []byte, place func(draft, target string) error) error {
	draft, err := h.Draft(name)
	if err != nil {
		return err
	}
	if err := draft.write(data, name != keyFile); err != nil {
		return errors.Join(err, draft.Drop())
	}
	if err := place(draft.name, At(folder, name)); err != nil {
		return errors.Join(err, draft.Drop())
	}
	return nil
}

// Draft is a file in staging that will get a name elsewhere, unless it is removed.
type Draft struct {
	home *Home
	name string
	file *os.File
}

// Draft creates an empty draft of a file.
func (h *Home) Draft(name string) (*Draft, error) {
	draft := At(Staging, name+"."+Random())
	file, err := h.files.OpenFile(draft, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	return &Draft{h, draft, file}, err
}

// Name returns the draft's name in staging.
func (d *Draft) Name() string { return path.Base(d.name) }

// write fills the draft, once.
func (d *Draft) write(data []byte, readable bool) (err error) {
	if readable {
		err = d.file.Chmod(0o644) // The directories deny access to others, but a node may pass: see makeHome.
	}
	if err == nil {
		_, err = d.file.Write(data)
	}
	if err == nil {
		err = d.file.Sync()
	}
	return errors.Join(err, d.file.Close())
}

// Replace replaces a file by the draft, with the data. It fails with fs.ErrNotExist when the draft was removed.
func (d *Draft) Replace(folder, name string, data []byte) error {
	if err := d.write(data, true); err != nil {
		return err
	}
	return d.home.rename(d.name, At(folder, name))
}

// Drop removes the draft, unless it is in its place.
func (d *Draft) Drop() error {
	_ = d.file.Close() // nothing relevant was written, or it is closed
	return ignore(d.home.remove(d.name), fs.ErrNotExist)
}

// Move renames a file of the Home.
func (h *Home) Move(folder, name, toFolder, toName string) error {
	return h.rename(At(folder, name), At(toFolder, toName))
}

// Publish gives a file of the staging folder a name elsewhere: exclusively, on every version of NFS, and only while it
// has its name in staging. So after its name is removed, the file can no longer be published: no server links to a file
// without names. It fails with fs.ErrExist when the new name is taken, and with fs.ErrNotExist when the old one is
// gone.
func (h *Home) Publish(draft, folder, name string) error {
	err := h.link(At(Staging, draft), At(folder, name))
	// The client knew the file, but the server no longer does.
	if errors.Is(err, unix.ESTALE) && h.Refresh(Staging) == nil {
		if _, gone := h.Look(Staging, draft); errors.Is(gone, fs.ErrNotExist) {
			return gone
		}
	}
	return err
}

// PutBack gives a file a second name. It fails with fs.ErrExist when that is taken.
func (h *Home) PutBack(folder, name, toFolder, newName string) error {
	return h.link(At(folder, name), At(toFolder, newName))
}

// Permit creates an empty file for Spend. A share of an earlier version of the driver lacks the folder for it.
func (h *Home) Permit(name string) error {
	err := h.empty(At(Controllers, name))
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := h.MakeFolder(Controllers); err != nil {
		return err
	}
	return h.empty(At(Controllers, name))
}

// MakeFolder creates a folder of the Home, unless it exists.
func (h *Home) MakeFolder(folder string) error {
	return ignore(h.files.Mkdir(At(folder, ""), 0o700), fs.ErrExist)
}

// Bury moves a file to the burials, and returns the folder that has it then. A share of an earlier version of the
// driver has no folder for burials. If there is no room for one either, the file moves to the trash, because freeing
// must not need to write.
func (h *Home) Bury(folder, name, as string) (to string, err error) {
	err = h.Move(folder, name, Burials, as)
	if !errors.Is(err, fs.ErrNotExist) {
		return Burials, err
	}
	switch failed := h.files.Mkdir(At(Burials, ""), 0o700); {
	case errors.Is(failed, fs.ErrExist): // It is the file that does not exist.
		return Burials, err
	case errors.Is(failed, unix.ENOSPC), errors.Is(failed, unix.EDQUOT):
		return Trash, h.Move(folder, name, Trash, as)
	case failed != nil:
		return Burials, failed
	}
	return Burials, h.Move(folder, name, Burials, as)
}

func (h *Home) empty(path string) error {
	file, err := h.files.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return file.Close()
}

// Spend gives a permit the data and a name in staging, by one rename. It fails with fs.ErrNotExist when the permit is
// gone.
func (h *Home) Spend(permit, name string, data []byte) error {
	draft, err := h.permitted(permit)
	if err != nil {
		return err
	}
	return h.spent(name, draft.Replace(Staging, name, data))
}

// DraftOf creates a draft of a file from a permit, by one rename. It fails with fs.ErrNotExist when the permit is gone.
func (h *Home) DraftOf(permit, name string) (*Draft, error) {
	draft, err := h.permitted(permit)
	if err != nil {
		return nil, err
	}
	name += "." + Random()
	if err := h.spent(name, h.rename(draft.name, At(Staging, name))); err != nil {
		return nil, errors.Join(err, draft.file.Close())
	}
	draft.name = At(Staging, name)
	return draft, nil
}

// permitted opens a permit that will get a name in staging.
func (h *Home) permitted(permit string) (*Draft, error) {
	path := At(Controllers, permit)
	file, err := h.files.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	return &Draft{h, path, file}, err
}

// spent returns the result of moving a permit to a name in staging.
func (h *Home) spent(name string, err error) error {
	if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ESTALE) {
		return err
	}
	if failed := h.Refresh(Staging); failed != nil {
		return failed
	}
	// The answer was lost, and the rename repeated.
	if _, there := h.Look(Staging, name); there == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", fs.ErrNotExist, err)
}

// RenamePermit gives a permit a unique name. It fails with fs.ErrNotExist when the permit is gone.
func (h *Home) RenamePermit(permit, name string) error {
	err := h.Move(Controllers, permit, Controllers, name)
	if err == nil || h.Refresh(Controllers) != nil {
		return err
	}
	// The answer was lost: the rename was repeated, or reported as failed.
	if _, there := h.Look(Controllers, name); there == nil {
		return nil
	}
	return err
}

// Touch updates the time of a file of the staging folder, so that others see that a process works with it. The time is
// the server's, like that of written files: a record keeps it, and it decides which of two records was written last.
func (h *Home) Touch(name string) error {
	path := At(Staging, name)
	return h.names.read(func() error { return h.files.Touch(path) }, path)
}

// Writing identifies a file and the time of its last write, by the server's clock.
type Writing struct {
	Nanoseconds   int64
	device, inode uint64
}

// Same reports whether two names belong to one file.
func (w Writing) Same(as Writing) bool { return w.device == as.device && w.inode == as.inode }

// Written returns a file's writing.
func (h *Home) Written(folder, name string) (Writing, error) {
	stat, err := h.Look(folder, name)
	return Writing{
		Nanoseconds: unix.TimespecToNsec(unix.Timespec{Sec: stat.Mtime.Sec, Nsec: int64(stat.Mtime.Nsec)}),
		device:      unix.Mkdev(stat.Dev_major, stat.Dev_minor), inode: stat.Ino,
	}, err
}

// Refresh makes the next listing of a folder show all changes before the call: the kernel may cache the names for a
// while.
func (h *Home) Refresh(folder string) error {
	_, err := h.files.Lstat(At(folder, ""), unix.AT_STATX_FORCE_SYNC)
	return err
}

// Remove removes a file of the Home; a missing file is no error.
func (h *Home) Remove(folder, name string) error {
	return ignore(h.remove(At(folder, name)), fs.ErrNotExist)
}

// Claim notes the owner of a directory. It is a symbolic link that leads nowhere: one call creates it, and fails if it
// exists. The result is the owner of the claim then, which may not be the caller.
func (h *Home) Claim(name, owner string) (holder string, err error) {
	err = h.files.Symlink(owner, At(Claims, name))
	if err == nil {
		return owner, nil
	}
	if !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return h.Claimed(name)
}

// Claimed returns the owner of a claim; empty if there is none. Kinds: Unusable for a file that is no claim.
func (h *Home) Claimed(name string) (holder string, err error) {
	path := At(Claims, name)
	err = h.names.read(func() (err error) { holder, err = h.files.Readlink(path); return err }, path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case errors.Is(err, unix.EINVAL):
		return "", backends.Errorf(backends.Unusable, "%s is no symbolic link, and so no claim of this driver: remove it: %w",
			path, err)
	}
	return holder, err
}

func ignore(err, what error) error {
	if errors.Is(err, what) {
		return nil
	}
	return err
}

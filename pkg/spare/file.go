package spare

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/failure"
	"github.com/stowage-csi/stowage/pkg/rawfile"
)

// draftEnding is the suffix of a file that is being created.
const draftEnding = ".tmp"

// Open opens the file, and creates it if it does not exist; its directory is the driver's own. If Open fails, for
// example on a full disk, the returned Room has no room, but can still be used. If the file could not be read, its
// notes are unknown, and each method of the Room tries to read it again.
func Open(path string) (*Room, error) {
	r := &Room{path: path, notes: map[string]page{}}
	if err := r.open(); err != nil {
		return r, fmt.Errorf("no room is kept for notes in %s: %w", path, err)
	}
	return r, nil
}

// open reads the file, or creates it.
func (r *Room) open() error {
	data, err := rawfile.Read(r.path)
	isMissing := errors.Is(err, os.ErrNotExist)
	r.unread = nil
	if err != nil && !isMissing {
		r.unread = err
		return err
	}
	if isMissing || len(data) != pages*pageSize {
		data = make([]byte, pages*pageSize)
		if err := take(r.path, data); err != nil {
			return err
		}
	}
	r.made = true
	r.read(data)
	return nil
}

// known reads the file if that failed before: an unread note may say that a volume is in use. r.mu is held. Kinds:
// Unavailable while the notes are unknown.
func (r *Room) known() error {
	if r.unread == nil {
		return nil
	}
	if _ = r.open(); r.unread == nil { // Without a file there are no notes, even if it cannot be created.
		return nil
	}
	return failure.Errorf(failure.Unavailable, "the notes of volumes in use in %s could not be read: mend the disk, or "+
		"remove the file if nothing on the node uses a volume: %w", r.path, r.unread)
}

// take creates the file with all of its blocks.
func take(path string, data []byte) error {
	draft := path + draftEnding
	file, err := rawfile.Open(draft, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	stayInPlace(file)
	_, err = file.Write(data)
	if err == nil {
		err = file.Sync() // until then the blocks are only promised
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(draft, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(draft))
	}
	return nil
}

// stayInPlace makes a btrfs overwrite the blocks of an empty file, instead of allocating new ones (ioctl_iflags(2)). No
// other filesystem needs or knows the flag.
func stayInPlace(file *os.File) {
	if flags, err := unix.IoctlGetInt(int(file.Fd()), unix.FS_IOC_GETFLAGS); err == nil {
		const noCopyOnWrite = 0x00800000 // FS_NOCOW_FL
		_ = unix.IoctlSetPointerInt(int(file.Fd()), unix.FS_IOC_SETFLAGS, flags|noCopyOnWrite)
	}
}

// read reads the contents of the file. Of several notes for a key, the latest counts.
func (r *Room) read(data []byte) {
	for at := range pages {
		p, ok := decode(data[at*pageSize : (at+1)*pageSize])
		if !ok {
			continue
		}
		r.used[at] = p.key
		r.turn = max(r.turn, p.turn)
		if p.turn > r.notes[p.key].turn {
			r.notes[p.key] = p
		}
	}
}

// clearOthers clears all pages of a key except one. A page that cannot be cleared is ignored because a later note
// exists, and is cleared with the key.
func (r *Room) clearOthers(key string, but int) {
	for at, whose := range r.used {
		if whose == key && at != but {
			_ = r.clear(at) // see above
		}
	}
}

func (r *Room) clear(at int) error {
	err := r.write(at, make([]byte, pageSize))
	if err == nil {
		r.used[at] = ""
	}
	return err
}

func (r *Room) write(at int, data []byte) error {
	file, err := rawfile.Open(r.path, os.O_WRONLY, 0)
	if err == nil {
		_, err = file.WriteAt(data, int64(at)*pageSize)
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		return failure.Errorf(failure.Unavailable, "writing to the room that is kept for notes: %w", err)
	}
	return nil
}

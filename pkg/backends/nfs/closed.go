package nfs

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
	"github.com/stowage-csi/stowage/pkg/safepath"
)

// modeSuffix ends the name of a note in staging: a symbolic link that leads nowhere, and whose text is the mode that a
// directory had before it was made writable for its move, and the directory's inode number.
const modeSuffix = ".mode"

// moveIn moves a part from staging to its place; if it is gone, it was moved already. A controller that a server maps
// to nobody (root_squash) can only move a directory that its owner may write to, because ".." in it changes.
func (e *engine) moveIn(s *share.Share, h *share.Home, r *record, p part) error {
	parent, err := e.parentOf(s, h, r, p)
	if err != nil {
		return err
	}
	defer closeQuietly(parent)
	draft := share.At(share.Staging, p.draft)
	move := func() error { return s.Files().RenameTo(draft, safepath.NewRoot(parent), path.Base(p.place)) }
	err = move()
	if !errors.Is(err, unix.EACCES) {
		return ignoreGone(err)
	}
	switch failed := makeMovable(s, draft); {
	case errors.Is(failed, unix.EPERM):
		return err // Only its owner can do that.
	case failed != nil:
		return ignoreGone(failed)
	}
	return ignoreGone(move())
}

// makeMovable lets the owner of a directory write to it. It notes the mode before that, so that a process that ends
// before giveModeBack leaves it to another. The first note stays.
func makeMovable(s *share.Share, draft string) error {
	stat, err := s.Files().Lstat(draft, 0)
	if err != nil {
		return err
	}
	mode := uint32(stat.Mode) & 0o7777
	if stat.Mode&unix.S_IFMT != unix.S_IFDIR || mode&0o700 == 0o700 {
		return nil // It is a file, or another process has done it.
	}
	err = s.Files().Symlink(fmt.Sprintf("%04o %d", mode, stat.Ino), draft+modeSuffix)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return s.Files().Chmod(draft, fileMode(mode|0o700))
}

// giveModeBack gives a directory in its place the mode that it had before its move, and drops the note. A process that
// was stopped after it had read the note may find another volume's directory there, which is left as it is. Kinds:
// Unusable for a note that is none of this driver.
func giveModeBack(s *share.Share, p part) error {
	if strings.HasSuffix(p.draft, suffix) {
		return nil // It is a file.
	}
	note := share.At(share.Staging, p.draft) + modeSuffix
	mode, inode, err := readNote(s, note)
	if err == nil {
		err = ignoreGone(s.Files().ChmodInode(p.place, inode, mode))
	}
	if err != nil {
		return ignoreGone(err)
	}
	return ignoreGone(s.Files().Remove(note))
}

// readNote reads a note of makeMovable. It fails with fs.ErrNotExist when there is none. Kinds: as giveModeBack.
func readNote(s *share.Share, note string) (mode fs.FileMode, inode uint64, err error) {
	text, err := s.Files().Readlink(note)
	if errors.Is(err, unix.EINVAL) {
		return 0, 0, backends.Errorf(backends.Unusable,
			"%s is no symbolic link, and so no note of this driver: remove it: %w", note, err)
	}
	if err != nil {
		return 0, 0, err
	}
	before, of, _ := strings.Cut(text, " ")
	bits, err := strconv.ParseUint(before, 8, 12)
	if err == nil {
		inode, err = strconv.ParseUint(of, 10, 64)
	}
	if err != nil {
		return 0, 0, backends.Errorf(backends.Unusable,
			"%s does not lead to the mode and the inode number of a directory: remove it: %w", note, err)
	}
	return fileMode(uint32(bits)), inode, nil
}

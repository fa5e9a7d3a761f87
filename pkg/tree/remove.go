package tree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/rawfile"
)

// flattenDepth is the depth at which a removal moves the rest of the tree up beside the top, so that no tree is too
// deep.
const flattenDepth = 64

// mostPending is how many directories wait beside the top at a time, unless the tree is deeper than that many times
// flattenDepth. An interrupted removal leaves no more names there.
const mostPending = 2048

// errFirst means that the directories that were moved up must be removed first.
var errFirst = errors.New("what was moved up comes first")

// remover is a removal in progress.
type remover struct {
	top     *os.File // the directory that holds the tree
	name    string
	pending []string // directories that were moved up; the last is removed first
	room    int      // how many more directories may be moved up from the current one
	moved   int
	*count
	outer *remover // the removal that has found the subvolume of this one; nil if this is not of a subvolume
}

// count is what a removal and those of subvolumes have in common.
type count struct {
	removed int // removed entries, and those moved up
	left    int // how many more entries may be tried
}

// Remove removes a file or a directory tree, and succeeds if there is none. The path must belong to the caller up to
// its last name. Remove may move parts of a deep tree beside path, under path's name with a number added. After a
// crash, these must be removed, too.
//
// It stops with ErrMount at a mount inside the tree, because the data behind it belong to others. It stops with
// ErrEndless at a directory that seems to have no end; entries that are removed by then stay removed.
func Remove(ctx context.Context, path string) error {
	top, err := rawfile.Open(filepath.Dir(path), os.O_RDONLY, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer closeQuietly(top)
	return RemoveIn(ctx, top, filepath.Base(path))
}

// RemoveIn is Remove for a name in an open directory.
func RemoveIn(ctx context.Context, top *os.File, name string) error {
	return removeIn(ctx, top, name, mostRemoved)
}

func removeIn(ctx context.Context, top *os.File, name string, most int) error {
	r := &remover{top: top, name: name, count: &count{left: most}}
	return r.tree(ctx, name)
}

// tree removes an entry of the top, and then the directories that were moved up from it.
func (r *remover) tree(ctx context.Context, name string) error {
	r.pending = []string{name}
	for len(r.pending) > 0 {
		last := len(r.pending) - 1
		next := r.pending[last]
		r.pending = r.pending[:last]
		r.room = max(1, (mostPending-last)/2) // Each may have some moved up, however many wait.
		err := r.remove(ctx, r.top, next, 0)
		if errors.Is(err, errFirst) && r.room == 0 { // Otherwise there is no room in the outer removal.
			r.pending = slices.Insert(r.pending, last, next)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// remove removes one entry of dir, of any kind.
func (r *remover) remove(ctx context.Context, dir *os.File, name string, depth int) error {
	if err := r.next(ctx, name); err != nil {
		return err
	}
	err := r.unlink(dir, name, 0)
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	if !errors.Is(err, unix.EISDIR) {
		return removeError(name, err)
	}
	if r.removedEmpty(dir, name, depth) {
		return nil
	}
	sub, err := openDir(dir, name)
	if err != nil {
		return err
	}
	defer closeQuietly(sub)
	subvolume, err := isSubvolume(sub)
	if err == nil && subvolume {
		err = makeWritable(sub)
	}
	switch {
	case err != nil:
		return err
	case subvolume && r.outer != nil:
		return r.outer.moveUp(ctx, dir, name)
	case depth >= flattenDepth:
		return r.moveUp(ctx, dir, name)
	case subvolume:
		err = r.subvolume(ctx, sub)
	default:
		err = r.each(sub, func(entry string) error { return r.remove(ctx, sub, entry, depth+1) })
	}
	if err != nil {
		return err
	}
	return removeError(name, r.unlink(dir, name, unix.AT_REMOVEDIR))
}

// next starts with an entry, unless too many were tried.
func (r *remover) next(ctx context.Context, name string) error {
	if r.left--; r.left < 0 {
		return fmt.Errorf("at %q: %w, or the tree is too large to be removed at once: %d entries were removed", name,
			ErrEndless, r.removed)
	}
	return ctx.Err()
}

func (r *remover) unlink(dir *os.File, name string, flags int) error {
	err := unix.Unlinkat(int(dir.Fd()), name, flags)
	if err == nil {
		r.removed++
	}
	return err
}

// removedEmpty removes a directory that would be moved up, if it is empty, and reports whether it did. A snapshot has
// an empty directory in place of each subvolume that was in its source: a btrfs removes it, but does not move it.
func (r *remover) removedEmpty(dir *os.File, name string, depth int) bool {
	if depth < flattenDepth {
		return false
	}
	err := r.unlink(dir, name, unix.AT_REMOVEDIR)
	return err == nil || errors.Is(err, unix.ENOENT)
}

// each removes every entry of a directory. Removals while names are read may hide other names, so it reads again until
// there are none. After reading mostBarren times only names without entries, it fails with ErrEndless.
func (r *remover) each(dir *os.File, remove func(entry string) error) error {
	for barren := 0; barren < mostBarren; barren++ {
		names, err := dir.Readdirnames(batch)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		before := r.removed
		for _, entry := range names {
			if err := remove(entry); err != nil {
				return err
			}
		}
		if r.removed > before {
			barren = -1
		}
		if _, err := dir.Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
	return fmt.Errorf("at %q: %w: nothing was there of what it has shown %d times", dir.Name(), ErrEndless, mostBarren)
}

// mostStem is the maximum length of the part of a name beside the top that comes from the entry, in bytes. With a
// number behind it, the name is shorter than the 255 bytes that filesystems allow.
const mostStem = 230

// moveUp moves a directory beside the top, to be removed there. It fails with errFirst when there is no room.
func (r *remover) moveUp(ctx context.Context, dir *os.File, name string) error {
	if r.room == 0 {
		return errFirst
	}
	for {
		if err := r.next(ctx, name); err != nil {
			return err
		}
		r.moved++
		target := fmt.Sprintf("%s.%d", r.name[:min(len(r.name), mostStem)], r.moved)
		err := unix.Renameat2(int(dir.Fd()), name, int(r.top.Fd()), target, unix.RENAME_NOREPLACE)
		// ENOTEMPTY would be about the directory itself, which stands for a subvolume.
		taken := errors.Is(err, unix.EEXIST)
		if errors.Is(err, unix.EINVAL) { // NFS lacks the flag. A directory can only replace an empty one, which is fine.
			err = unix.Renameat(int(dir.Fd()), name, int(r.top.Fd()), target)
			taken = errors.Is(err, unix.EEXIST) || errors.Is(err, unix.ENOTEMPTY)
		}
		if taken {
			continue
		}
		if err == nil {
			r.removed++
			r.room--
			r.pending = append(r.pending, target)
		}
		return removeError(name, err)
	}
}

func removeError(name string, err error) error {
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	return &os.PathError{Op: "remove", Path: name, Err: err}
}

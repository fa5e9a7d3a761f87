package local

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/durable"
	"github.com/stowage-csi/stowage/pkg/failure"
	"github.com/stowage-csi/stowage/pkg/tree"
)

// discard moves a folder of the pool into the trash, whose name nobody looks up. The size is given back when
// it is gone. The move is not made durable: what a crash undoes is for the caller or the next start.
func (p *pool) discard(path string, size int64) error {
	target := filepath.Join(p.folder(trashFolder), unique(filepath.Base(path)))
	if err := p.moveNew(path, target); err != nil {
		return err
	}
	p.janitor.add(waste{path: target, size: size})
	return nil
}

// delete moves what has been acknowledged into the trash, durably. One sync is enough: the move is one change
// of the filesystem, and should a crash separate its halves, the half that matters is that the old name is
// gone.
func (p *pool) delete(path string, size int64) error {
	target := filepath.Join(p.folder(trashFolder), unique(filepath.Base(path)))
	err := p.move(path, target, filepath.Dir(path))
	moved := err == nil
	if failure.IsAny(err, unix.ENOSPC, unix.EDQUOT) {
		err = p.deleteInPlace(path)
	}
	if err != nil && !p.isGone(path, err) {
		return err
	}
	p.index.drop(filepath.Base(path))
	if moved {
		p.janitor.add(waste{path: target, size: size})
	} else {
		p.ledger.give(size)
	}
	return nil
}

// deleteInPlace removes something where it is: on a btrfs that is full a rename finds no room, and only removing does.
// The record goes last, so that a deletion that is cut short goes on when it is asked for again.
func (p *pool) deleteInPlace(path string) error {
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.Name() == recordFile {
			continue
		}
		if err := tree.Remove(p.janitor.ctx, filepath.Join(path, entry.Name())); err != nil {
			return err
		}
	}
	if err := tree.Remove(p.janitor.ctx, path); err != nil {
		return err
	}
	return durable.SyncDir(filepath.Dir(path))
}

// isGone reports whether something could not be moved because somebody has removed it by hand, in a pool that
// is well otherwise. Then it is deleted; else nobody could ever delete it.
func (p *pool) isGone(path string, err error) bool {
	if !errors.Is(err, os.ErrNotExist) || !p.lacks(path) {
		return false
	}
	p.log.Warn("what is to be deleted was removed by somebody else already", "path", path)
	return true
}

// lacks reports whether there is nothing at the path, in a pool that is well.
func (p *pool) lacks(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, os.ErrNotExist) && p.problem() == nil
}

// retain moves a volume to where an operator finds it, durably at both ends.
func (p *pool) retain(path, name string) error {
	folder := p.folder(retainedFolder)
	err := p.move(path, filepath.Join(folder, name), folder, filepath.Dir(path))
	if err != nil && !p.isGone(path, err) {
		return err
	}
	p.index.drop(filepath.Base(path))
	return nil
}

// move moves something and syncs the folders. When they cannot be synced, it moves it back: it is not known
// to be moved.
func (p *pool) move(from, to string, folders ...string) error {
	if err := p.moveNew(from, to); err != nil {
		return p.explain(err)
	}
	for _, folder := range folders {
		if err := durable.SyncDir(folder); err != nil {
			return errors.Join(err, p.moveNew(to, from))
		}
	}
	return nil
}

// moveNew is durable.MoveNew of what nobody else moves, from or to a name that nobody else has. A server may have moved
// it and answer with an error: what is gone here and there at the other end was moved.
func (p *pool) moveNew(from, to string) error {
	err := durable.MoveNew(from, to)
	if err == nil || !p.lacks(from) {
		return err
	}
	if _, missing := os.Lstat(to); missing != nil {
		return err
	}
	return nil
}

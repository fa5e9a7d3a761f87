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

// discard moves a folder of the pool into the trash, under a name that is never looked up. The bytes are given back
// once the folder is removed. The move is not durable: if a crash undoes it, the caller or the next start repeats it.
func (p *pool) discard(path string, size int64) error {
	target := filepath.Join(p.folder(trashFolder), unique(filepath.Base(path)))
	if err := p.moveNew(path, target); err != nil {
		return err
	}
	p.janitor.add(waste{path: target, size: size})
	return nil
}

// delete moves an acknowledged item into the trash, durably. One sync is enough: the move is one change of the
// filesystem. If a crash separates its halves, only the removal of the old name matters.
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

// deleteInPlace removes an item where it is. On a full btrfs, a rename finds no room, but a removal succeeds. The
// record goes last, so that a retry can continue an interrupted deletion.
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

// isGone reports whether a move failed because the item was removed by hand, in a pool without other problems. Then the
// item counts as deleted; otherwise it could never be deleted.
func (p *pool) isGone(path string, err error) bool {
	if !errors.Is(err, os.ErrNotExist) || !p.lacks(path) {
		return false
	}
	p.log.Warn("what is to be deleted was removed by somebody else already", "path", path)
	return true
}

// lacks reports whether nothing is at the path, in a pool without problems.
func (p *pool) lacks(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, os.ErrNotExist) && p.problem() == nil
}

// retain moves a volume to a folder where an operator finds it, durably at both ends.
func (p *pool) retain(path, name string) error {
	folder := p.folder(retainedFolder)
	err := p.move(path, filepath.Join(folder, name), folder, filepath.Dir(path))
	if err != nil && !p.isGone(path, err) {
		return err
	}
	p.index.drop(filepath.Base(path))
	return nil
}

// move moves an item and syncs the folders. If they cannot be synced, it moves the item back, because the move may not
// last.
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

// moveNew is durable.MoveNew for an item that nothing else moves, from or to a unique name. A server may do the move
// and still answer with an error: an item that is gone at one end and is at the other was moved.
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

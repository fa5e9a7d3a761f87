package local

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
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
	if err := p.unlessGone(path, err, filepath.Dir(path)); err != nil {
		return err
	}
	p.index.drop(filepath.Base(path))
	if moved {
		p.janitor.add(waste{path: target, size: size})
		return nil
	}
	p.removeLeft(filepath.Base(path))
	p.ledger.give(size)
	return nil
}

// removeLeft queues the trash of an item that is gone from its place. An earlier call may have moved it there and
// failed, and the janitor does not know that trash before the next start.
func (p *pool) removeLeft(name string) {
	entries, err := os.ReadDir(p.folder(trashFolder))
	if err != nil {
		p.log.Warn("the trash of a deleted item may stay until the next start", "entry", name, "error", err)
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), name+".") {
			p.discarded(p.entry(trashFolder, entry.Name()))
		}
	}
}

// discarded queues an item in the trash that the ledger does not count. It counts with its promise, or with what it
// holds on disk, until it is gone.
func (p *pool) discarded(path string) {
	size := max(p.costOfTrash(path), p.heldBy(path))
	p.ledger.add(size)
	p.janitor.add(waste{path: path, size: size})
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

// unlessGone returns the error of a move, or nil if it failed because the item was gone before, in a pool without other
// problems. Somebody may have removed it by hand, or an earlier call moved it and could make that neither durable nor
// undone. Then the item counts as deleted, once that is durable in the folders: otherwise it could never be deleted.
func (p *pool) unlessGone(path string, err error, folders ...string) error {
	if !errors.Is(err, os.ErrNotExist) || !p.lacks(path) {
		return err
	}
	for _, folder := range folders {
		if err := durable.SyncDir(folder); err != nil {
			return backends.Errorf(backends.Unavailable, "it is gone, and a loss of power may undo that: %w", err)
		}
	}
	p.log.Warn("what is to be deleted was removed by somebody else already, or by an earlier call that failed", "path",
		path)
	return nil
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
	if err := p.unlessGone(path, err, folder, filepath.Dir(path)); err != nil {
		return err
	}
	p.index.drop(filepath.Base(path))
	return nil
}

// move moves an item and syncs the folders. If they cannot be synced, it moves the item back, because the move may not
// last. Kinds: Unavailable when that failed too; the next call finds the item gone.
func (p *pool) move(from, to string, folders ...string) error {
	if err := p.moveNew(from, to); err != nil {
		return p.explain(err)
	}
	for _, folder := range folders {
		err := durable.SyncDir(folder)
		if err == nil {
			continue
		}
		if undo := p.moveNew(to, from); undo != nil {
			return backends.Errorf(backends.Unavailable, "it was moved to %s, and a loss of power may undo that: %w", to,
				errors.Join(err, undo))
		}
		return err
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

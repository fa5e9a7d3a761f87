package local

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/stowage-csi/stowage/pkg/durable"
)

// discard moves a folder of the pool into the trash, whose name nobody looks up. The size is given back when
// it is gone. The move is not made durable: what a crash undoes is for the caller or the next start.
func (p *pool) discard(path string, size int64) error {
	target := filepath.Join(p.folder(trashFolder), unique(filepath.Base(path)))
	if err := durable.MoveNew(path, target); err != nil {
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
	if p.isGone(path, err) {
		p.ledger.give(size)
		return nil
	}
	if err != nil {
		return err
	}
	p.janitor.add(waste{path: target, size: size})
	return nil
}

// isGone tells whether something could not be moved because somebody has removed it by hand, in a pool that
// is well otherwise. Then it is deleted; else nobody could ever delete it.
func (p *pool) isGone(path string, err error) bool {
	if !errors.Is(err, os.ErrNotExist) || p.problem() != nil {
		return false
	}
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		return false
	}
	p.log.Warn("what is to be deleted was removed by somebody else already", "path", path)
	return true
}

// retain moves a volume to where an operator finds it, durably at both ends.
func (p *pool) retain(path, name string) error {
	folder := p.folder(retainedFolder)
	err := p.move(path, filepath.Join(folder, name), folder, filepath.Dir(path))
	if p.isGone(path, err) {
		return nil
	}
	return err
}

// move moves something and syncs the folders. When they cannot be synced, it moves it back: it is not known
// to be moved.
func (p *pool) move(from, to string, folders ...string) error {
	if err := durable.MoveNew(from, to); err != nil {
		return p.explain(err)
	}
	for _, folder := range folders {
		if err := durable.SyncDir(folder); err != nil {
			return errors.Join(err, durable.MoveNew(to, from))
		}
	}
	return nil
}

package local

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/local/durable"
	"github.com/stowage-csi/stowage/pkg/backends/local/filecopy"
)

// poolType says what a pool's volumes are.
type poolType string

const (
	directory poolType = "directory"
	image     poolType = "image"
)

// The folders of a pool, and the files in the folder of a volume or snapshot.
const (
	volumesFolder    = "volumes"
	snapshotsFolder  = "snapshots"
	groupsFolder     = "groups"
	stagingFolder    = "staging"
	trashFolder      = "trash"
	retainedFolder   = "retained"
	quarantineFolder = "quarantine"

	recordFile = "record.json"
)

// pool is a directory with volumes of one type.
type pool struct {
	name    string
	kind    poolType
	path    string
	reflink bool        // whether files can share blocks
	self    os.FileInfo // the directory as it was at start, to notice when another is in its place
	log     *slog.Logger
	lock    *os.File
	ledger  *ledger
	janitor *janitor
}

// newPool takes a pool's directory and makes what is missing in it.
func newPool(s poolSettings, dataDir string, log *slog.Logger) (*pool, error) {
	if err := os.MkdirAll(s.path, 0o700); err != nil {
		return nil, err
	}
	path, err := filepath.EvalSymlinks(s.path)
	if err != nil {
		return nil, err
	}
	p := &pool{name: s.name, kind: s.kind, path: path, log: log.With("pool", s.name)}
	if p.lock, err = lockPath(filepath.Join(path, lockFile)); err != nil {
		return nil, err
	}
	if err := p.open(dataDir); err != nil {
		return nil, errors.Join(err, p.lock.Close())
	}
	p.ledger = &ledger{path: path, capacity: s.capacity}
	p.janitor = newJanitor(p.log, p.ledger)
	return p, nil
}

// open makes sure that the pool is the right one, makes its folders and finds out what its filesystem can do.
func (p *pool) open(dataDir string) error {
	if err := p.identify(dataDir); err != nil {
		return err
	}
	for _, folder := range folders() {
		if err := os.Mkdir(p.folder(folder), 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	if err := durable.SyncDir(p.path); err != nil {
		return err
	}
	var err error
	if p.reflink, err = filecopy.CanClone(p.folder(stagingFolder)); err != nil {
		return fmt.Errorf("pool %q cannot be written to: %w", p.name, err)
	}
	p.self, err = os.Stat(p.path)
	return err
}

func folders() []string {
	return []string{volumesFolder, snapshotsFolder, groupsFolder, stagingFolder, trashFolder, retainedFolder, quarantineFolder}
}

func (p *pool) folder(name string) string { return filepath.Join(p.path, name) }

// unique makes a name that nothing else has.
func unique(handle string) string { return handle + "." + rand.Text() }

// dataName is what a volume's or snapshot's data is called in its folder.
func (k poolType) dataName() string {
	if k == image {
		return "image"
	}
	return "data"
}

// access is all the ways in which a pool's volumes can be used.
func (k poolType) access() backends.Access {
	types := []backends.AccessType{backends.Mount}
	if k == image {
		types = append(types, backends.Block)
	}
	return backends.Access{Types: types, Modes: backends.SingleNodeModes()}
}

// take promises so many bytes of the pool. Before it says that there is no room, it waits a little for what
// is being removed. Kinds: Exhausted.
func (p *pool) take(ctx context.Context, size int64) error {
	err := p.ledger.take(size, p.name)
	if !backends.Is(err, backends.Exhausted) {
		return err
	}
	p.janitor.wait(ctx, reclaimTime)
	return p.ledger.take(size, p.name)
}

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

// explain turns an error into a better one when the pool itself is what is wrong.
func (p *pool) explain(err error) error {
	if problem := p.problem(); problem != nil {
		return backends.Errorf(backends.Unavailable, "%s: %w", problem.message, err)
	}
	return err
}

// problem is what is wrong with a pool; nil when all is well.
type problem struct {
	reason  string // one CamelCase word
	message string // a sentence
	// readable tells whether what is there can still be read.
	readable bool
}

// problem looks at the pool's directory.
func (p *pool) problem() *problem {
	now, err := os.Stat(p.path)
	if err != nil {
		return &problem{reason: "PoolMissing", message: fmt.Sprintf("the directory %s of pool %q is gone: is its filesystem mounted? (%v)", p.path, p.name, err)}
	}
	if !os.SameFile(now, p.self) {
		return &problem{reason: "PoolReplaced", message: fmt.Sprintf("the directory %s of pool %q is not the one that it was at start: is its filesystem mounted?", p.path, p.name)}
	}
	if err := unix.Access(p.folder(volumesFolder), unix.W_OK); err != nil {
		return &problem{
			reason: "PoolNotWritable", readable: true,
			message: fmt.Sprintf("the directory %s of pool %q cannot be written to: %v", p.path, p.name, err),
		}
	}
	return nil
}

// close ends the work in the background and lets other processes have the pool.
func (p *pool) close() error {
	p.janitor.close(closeGrace)
	return p.lock.Close()
}

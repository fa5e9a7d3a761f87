package local

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/durable"
	"github.com/stowage-csi/stowage/pkg/filecopy"
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
	if err := durable.MakeAll(s.path, 0o700); err != nil {
		return nil, err
	}
	path, err := filepath.EvalSymlinks(s.path)
	if err != nil {
		return nil, err
	}
	p := &pool{name: s.name, kind: s.kind, path: path, log: log.With("pool", s.name)}
	if p.lock, err = lockDir(path); err != nil {
		return nil, err
	}
	if err := p.open(dataDir); err != nil {
		return nil, errors.Join(err, p.lock.Close())
	}
	p.ledger = newLedger(s, path)
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

// close ends the work in the background and lets other processes have the pool.
func (p *pool) close() error {
	p.janitor.close(closeGrace)
	p.ledger.disk.leave(p)
	return p.lock.Close()
}

package local

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends/local/freeze"
	"github.com/stowage-csi/stowage/pkg/dirlock"
	"github.com/stowage-csi/stowage/pkg/durable"
	"github.com/stowage-csi/stowage/pkg/filecopy"
)

// locate creates the pool's directory if it is missing, and returns its path without symbolic links.
func (p *pool) locate() (path string, err error) {
	if err := durable.MakeAll(p.settings.path, 0o700); err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(p.settings.path)
}

// occupy locks the pool's directory and creates what is missing in it. It need not write to a complete pool, so a pool
// that is full or read-only is served like any other.
func (p *pool) occupy(path, dataDir string, ds *disks) (err error) {
	p.path = path
	if p.lock, err = dirlock.Lock(path); err != nil {
		return err
	}
	if err := p.open(dataDir); err != nil {
		return errors.Join(err, p.lock.Close())
	}
	p.ledger = newLedger(p)
	if err := ds.join(p); err != nil {
		return errors.Join(err, p.lock.Close())
	}
	p.janitor = newJanitor(p.log, p.ledger)
	return nil
}

// open checks that the pool is the right one, creates its folders and finds out what its filesystem supports.
func (p *pool) open(dataDir string) error {
	if err := p.identify(dataDir); err != nil {
		return err
	}
	if err := p.makeFolders(); err != nil {
		return err
	}
	p.probe()
	if err := p.findQuotas(); err != nil {
		return err
	}
	var err error
	if p.self, err = os.Stat(p.path); err != nil {
		return err
	}
	p.findDevice()
	var home, here unix.Stat_t
	if err := errors.Join(unix.Stat(dataDir, &home), unix.Stat(p.path, &here)); err != nil {
		return err
	}
	p.index = indexOf(dataDir, p.name)
	p.index.apart = home.Dev != here.Dev
	p.warn()
	return nil
}

// findDevice finds out which filesystem the pool is on. That filesystem must not be frozen.
func (p *pool) findDevice() {
	device, err := freeze.Device(p.path)
	if err != nil {
		p.log.Warn("it is not known on which filesystem the pool is: no filesystem is frozen for a copy", "error", err)
		return
	}
	p.device = &device
}

// warn logs that directory volumes on the node's own disk can fill it.
func (p *pool) warn() {
	if !p.storage.bounded && !p.quotas && !p.index.apart && !p.settings.sharesDisk {
		p.log.Warn("nothing bounds what is written to a volume of this pool, which is on the filesystem of the data "+
			"directory: one volume can fill the node's disk; "+
			"use a pool of type image, or a path on a filesystem of its own or with project quotas, or say that it is known: "+
			"sharesDisk: true", "path", p.path)
	}
}

func (p *pool) makeFolders() error {
	made := false
	for _, folder := range folders() {
		err := os.Mkdir(p.folder(folder), 0o700)
		if err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
		made = made || err == nil
	}
	if !made {
		return nil
	}
	return durable.SyncDir(p.path)
}

// probe finds out whether files can share blocks. Without room for the test, it assumes that they cannot: filesystems
// are then frozen for copies.
func (p *pool) probe() {
	can, err := filecopy.CanClone(p.folder(stagingFolder))
	if err != nil {
		p.log.Warn("the pool cannot be written to: what is in it is served, and all that needs no room works", "path", p.path,
			"error", err)
		return
	}
	p.reflink.Store(can)
	p.probed.Store(true)
}

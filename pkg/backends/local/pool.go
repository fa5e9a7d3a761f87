package local

import (
	"crypto/rand"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/local/freeze"
	"github.com/stowage-csi/stowage/pkg/dirlock"
	"github.com/stowage-csi/stowage/pkg/durable"
	"github.com/stowage-csi/stowage/pkg/filecopy"
	"github.com/stowage-csi/stowage/pkg/mountoptions"
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

// pool is a directory with volumes of one type. What stands below trouble is set before the pool is served.
type pool struct {
	name     string
	kind     poolType
	settings poolSettings
	log      *slog.Logger
	mending  atomic.Bool          // whether it is being opened, or made well, right now
	trouble  atomic.Pointer[away] // why it is not served; nil while it is

	path    string
	id      string
	reflink atomic.Bool // whether files can share blocks
	probed  atomic.Bool // whether that is known: to find out takes some room
	quotas  bool        // whether the sizes of directories are enforced
	// unbounded says which volumes are not, though they were; nil for none.
	unbounded atomic.Pointer[string]
	device    *uint64     // of its filesystem, as package freeze has it; nil where that is not known
	self      os.FileInfo // the directory as it was when it was opened, to notice when another is in its place
	lock      *os.File
	index     index
	ledger    *ledger
	janitor   *janitor
	told      bool    // that it cannot be used
	drafts    []waste // what was being made before, and could not be moved to the trash yet
}

func newPool(s poolSettings, log *slog.Logger) *pool {
	p := &pool{name: s.name, kind: s.kind, settings: s, log: log.With("pool", s.name)}
	p.fails(errors.New("it is still being opened: ask again"))
	return p
}

// served reports whether the pool can be used.
func (p *pool) served() bool { return p.trouble.Load() == nil }

// fails notes why the pool is not served.
func (p *pool) fails(why error) {
	p.trouble.Store(&away{pool: p.name, reason: poolUnavailable, why: why})
}

// occupy takes the pool's directory and makes what is missing in it. It writes nothing to a pool that lacks nothing:
// one that is full, or can only be read, is served like any other.
func (p *pool) occupy(e *engine) error {
	if err := durable.MakeAll(p.settings.path, 0o700); err != nil {
		return err
	}
	path, err := filepath.EvalSymlinks(p.settings.path)
	if err != nil {
		return err
	}
	if err := e.situate(p, path); err != nil {
		return err
	}
	p.path = path
	if p.lock, err = dirlock.Lock(path); err != nil {
		return err
	}
	if err := p.open(e); err != nil {
		return errors.Join(err, p.lock.Close())
	}
	p.ledger = newLedger(p)
	if err := e.disks.join(p); err != nil {
		return errors.Join(err, p.lock.Close())
	}
	p.janitor = newJanitor(p.log, p.ledger)
	return nil
}

// open makes sure that the pool is the right one, makes its folders and finds out what its filesystem can do.
func (p *pool) open(e *engine) error {
	if err := p.identify(e.dataDir); err != nil {
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
	if err := errors.Join(unix.Stat(e.dataDir, &home), unix.Stat(p.path, &here)); err != nil {
		return err
	}
	p.index = e.indexOf(p.name)
	p.index.apart = home.Dev != here.Dev
	p.warn()
	return nil
}

// findDevice finds out on which filesystem the pool is, which must not be frozen.
func (p *pool) findDevice() {
	device, err := freeze.Device(p.path)
	if err != nil {
		p.log.Warn("it is not known on which filesystem the pool is: no filesystem is frozen for a copy", "error", err)
		return
	}
	p.device = &device
}

// warn says what a directory on the node's own disk can do to all else that is there.
func (p *pool) warn() {
	if p.kind == directory && !p.quotas && !p.index.apart && !p.settings.sharesDisk {
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

// probe finds out whether files can share blocks. While there is no room to try they are taken not to: copies are
// frozen then.
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

func folders() []string {
	return []string{volumesFolder, snapshotsFolder, groupsFolder, stagingFolder, trashFolder, retainedFolder,
		quarantineFolder}
}

func (p *pool) folder(name string) string { return filepath.Join(p.path, name) }

// entry is the path of an entry of a folder.
func (p *pool) entry(folder, name string) string { return filepath.Join(p.path, folder, name) }

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
	access := backends.Access{Types: []backends.AccessType{backends.Mount}, Modes: backends.SingleNodeModes(),
		Mountable: mountoptions.Directory{}}
	if k == image {
		access.Types, access.Mountable = append(access.Types, backends.Block), mountoptions.Device{}
	}
	return access
}

// leave lets other processes have the pool, in which nothing is under way any more.
func (p *pool) leave() error {
	p.ledger.disk.leave(p)
	return p.lock.Close()
}

package local

import (
	"errors"
	"log/slog"
	"os"
	"sync/atomic"
)

// pool is a directory with volumes of one type. The fields below trouble are set before the pool is served.
type pool struct {
	name     string
	storage  *storage
	settings poolSettings
	log      *slog.Logger
	mending  atomic.Bool          // whether it is being opened or repaired right now
	trouble  atomic.Pointer[away] // why it is not served; nil while it is served

	path    string
	id      string
	reflink atomic.Bool // whether files can share blocks
	probed  atomic.Bool // whether reflink is known: finding out takes some room
	quotas  bool        // whether the sizes of directories are enforced
	// unbounded says which volumes lost the enforcement of their sizes; nil for none.
	unbounded atomic.Pointer[string]
	device    *uint64     // of its filesystem, as package freeze has it; nil if unknown
	self      os.FileInfo // the directory as of when it was opened, to notice when it is replaced
	lock      *os.File
	index     index
	ledger    *ledger
	janitor   *janitor
	told      bool    // whether the trouble was logged
	drafts    []waste // old drafts that could not be moved to the trash yet
}

func newPool(s poolSettings, log *slog.Logger) *pool {
	p := &pool{name: s.name, storage: s.poolType.storage(), settings: s, log: log.With("pool", s.name)}
	p.fails(errors.New("it is still being opened: ask again"))
	return p
}

// served reports whether the pool can be used.
func (p *pool) served() bool { return p.trouble.Load() == nil }

// fails records why the pool is not served.
func (p *pool) fails(why error) {
	p.trouble.Store(&away{pool: p.name, reason: poolUnavailable, why: why})
}

// leave lets other processes have the pool. No work on it may be under way.
func (p *pool) leave() error {
	p.ledger.disk.leave(p)
	return p.lock.Close()
}

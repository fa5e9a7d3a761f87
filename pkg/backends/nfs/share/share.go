package share

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/export"
	"github.com/stowage-csi/stowage/pkg/deadline"
	"github.com/stowage-csi/stowage/pkg/safepath"
)

const (
	// most is the maximum number of calls that work on a share at a time, and thus of threads that a dead server costs.
	most = 32
	// grace is how long a call may continue after its deadline to report its result.
	grace = 500 * time.Millisecond
)

// Share is a mounted export.
type Share struct {
	Address export.Address
	Version string // of NFS

	pool  *Pool
	root  *export.Root
	files safepath.Root // over root.Dir
	calls deadline.Calls
	turns *semaphore.Weighted
	count atomic.Uint64

	// Guarded by the pool's mutex.
	users   int
	used    time.Time // the time of the last release
	clocked bool      // whether a timer is set
	doubted bool      // whether the next call tries to mount it anew

	home  sync.Mutex // held for opening known
	known *Home
}

func newShare(p *Pool, address export.Address, root *export.Root) *Share {
	return &Share{Address: address, Version: root.Version, pool: p, root: root, files: safepath.NewRoot(root.Dir),
		turns: semaphore.NewWeighted(most)}
}

// Files returns the share's root for names that are the driver's own. Entries below it may be a pod's.
func (s *Share) Files() safepath.Root { return s.files }

// Dir returns the share's root directory.
func (s *Share) Dir() *os.File { return s.root.Dir }

// Filesystem names the server's filesystem of the share, which other shares may use too. If it is unknown, it names
// only the share.
func (s *Share) Filesystem() string { return cmp.Or(s.root.Filesystem, s.Address.String()) }

// Hold keeps the share, or its replacement, mounted until release is called. Kinds: as Pool.HoldBriefly.
func (s *Share) Hold(ctx context.Context) (held *Share, release func(), err error) {
	return s.pool.HoldBriefly(ctx, s.Address)
}

// Lag returns the maximum age of the kernel's information about a file.
func (s *Share) Lag() time.Duration { return s.root.Lag }

// Direct reports whether files that others write must be opened with O_DIRECT.
func (s *Share) Direct() bool { return s.root.Direct }

// run does work in a separate goroutine, which holds the share until it ends.
func (s *Share) run(ctx context.Context, name string, work Work) error {
	if err := s.answers(); err != nil {
		return err
	}
	call := deadline.Call{Name: fmt.Sprintf("%s on %s", name, s.Address), On: fmt.Sprint(s.count.Add(1)), Grace: grace}
	return deadline.Run(s.calls.With(ctx), call, func(ctx context.Context) error {
		if !s.pool.retain(s) {
			return backends.Errorf(backends.Unavailable, "the share was dropped just now: ask again")
		}
		defer s.pool.release(s)
		if err := s.turns.Acquire(ctx, 1); err != nil {
			return backends.Errorf(backends.Unavailable, "%d calls work on %s already: ask again: %w", most, s.Address, err)
		}
		defer s.turns.Release(1)
		if err := s.answers(); err != nil {
			return err
		}
		err := work(ctx, s)
		s.pool.judge(s, err) // also if no caller waits any more
		return err
	})
}

// answers refuses calls while one that was given up still hangs. Kinds: Unavailable.
func (s *Share) answers() error {
	if n := s.calls.GivenUp(); n > 0 {
		return backends.Errorf(backends.Unavailable,
			"the server of %s does not answer (%d earlier calls still hang): ask again", s.Address, n)
	}
	return nil
}

// Space returns the size of the share's filesystem, and the space that is free for the driver, in bytes.
func (s *Share) Space() (size, free int64, err error) {
	var stat unix.Statfs_t
	if err := unix.Fstatfs(int(s.root.Dir.Fd()), &stat); err != nil {
		return 0, 0, fmt.Errorf("the space of %s could not be read: %w", s.Address, err)
	}
	return int64(stat.Blocks) * stat.Frsize, int64(stat.Bavail) * stat.Frsize, nil
}

func (s *Share) close() error { return s.root.Close() }

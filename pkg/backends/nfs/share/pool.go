package share

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/export"
	"github.com/stowage-csi/stowage/pkg/deadline"
)

// DefaultIdle is how long an unused share stays mounted.
const DefaultIdle = 5 * time.Minute

// Pool holds the mounted shares.
type Pool struct {
	mounter export.Mounter
	idle    time.Duration
	log     *slog.Logger
	opening deadline.Calls

	mu     sync.Mutex
	shares map[string]*Share // by export, whatever the version
	closed bool
}

// NewPool returns a Pool without shares. A share that is idle for the given time is dropped.
func NewPool(mounter export.Mounter, idle time.Duration, log *slog.Logger) *Pool {
	return &Pool{mounter: mounter, idle: idle, log: log, shares: map[string]*Share{}}
}

// Work is done on a share. It checks its context between two system calls, so that it ends soon after the context.
type Work func(ctx context.Context, s *Share) error

// With does the work on a share, and returns when it has ended or the context has. If the handles of a mount are stale,
// it is replaced, and the work is done once more: so the work must be repeatable.
//
// Kinds: Unavailable when the server does not answer in time, or an earlier call on the share still hangs; else those
// of export.Mounter's Open and the work's own.
func (p *Pool) With(ctx context.Context, address export.Address, name string, work Work) error {
	err := p.once(ctx, address, name, work)
	if errors.Is(err, unix.ESTALE) {
		p.log.WarnContext(ctx, "the handles of a share are stale: it is mounted anew", "share", address.String())
		err = p.once(ctx, address, name, work)
	}
	return err
}

func (p *Pool) once(ctx context.Context, address export.Address, name string, work Work) error {
	s, release, err := p.Hold(ctx, address)
	if err != nil {
		return err
	}
	defer release()
	return s.run(ctx, name, work)
}

// Distrust makes the next work mount a share anew, if that may mend a failure of work in the background.
func (p *Pool) Distrust(address export.Address, err error) {
	if s := p.use(address); s != nil {
		defer p.release(s)
		p.judge(s, err)
	}
}

// judge makes the next work mount a share anew, if that may mend a failure of the work.
func (p *Pool) judge(s *Share, err error) {
	switch {
	case outlived(err):
		p.discard(s)
	case errors.Is(err, unix.ETIMEDOUT):
		p.doubt(s)
	}
}

// outlived reports whether a failure lasts as long as the mount, even if the server recovers: stale handles stay stale,
// and the kernel caches a denial until the file changes.
func outlived(err error) bool { return errors.Is(err, unix.ESTALE) || errors.Is(err, unix.EACCES) }

// Hold keeps a share mounted until release is called, for work in the background. Kinds: as With.
func (p *Pool) Hold(ctx context.Context, address export.Address) (s *Share, release func(), err error) {
	if s = p.use(address); s == nil {
		call := deadline.Call{Name: fmt.Sprintf("mounting %s", address), On: "mount " + key(address)}
		s, err = deadline.Do(p.opening.With(ctx), call,
			func(ctx context.Context) (*Share, error) { return p.open(ctx, address) }, p.release)
		if err != nil {
			return nil, nil, err
		}
	}
	return s, sync.OnceFunc(func() { p.release(s) }), nil
}

// openTime is how long work in the background waits for a share to be mounted. If it waited for ever, later calls would
// wait behind it, instead of failing because the mount hangs.
const openTime = 30 * time.Second

// HoldBriefly is Hold for work in the background, whose context has no deadline.
func (p *Pool) HoldBriefly(ctx context.Context, address export.Address) (s *Share, release func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	return p.Hold(ctx, address)
}

func key(a export.Address) string { return a.Server + ":" + a.Path }

// use takes a share that is mounted already; nil if it is not mounted, must be mounted anew, or could be mounted with
// the requested connection. An attempt to mount it anew counts as use: the share stays among the mounted ones, so that
// Inspect keeps asking for it.
func (p *Pool) use(address export.Address) *Share {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.shares[key(address)]
	if s == nil || s.unlike(address) {
		return nil
	}
	if s.doubted {
		s.used = time.Now()
		return nil
	}
	s.users++
	return s
}

// unlike reports whether an unused share is mounted with another connection than the requested one. Without a request
// any connection is suitable. The caller holds the pool's mutex.
func (s *Share) unlike(address export.Address) bool {
	return address.Connection != "" && s.Address.Connection != address.Connection && s.users == 0
}

// giveWay unmounts unlike shares of the same server before a new mount: otherwise the kernel would use their
// connection.
func (p *Pool) giveWay(address export.Address) {
	var unlike []*Share
	p.mu.Lock()
	for name, s := range p.shares {
		if s.Address.Server == address.Server && s.unlike(address) {
			delete(p.shares, name)
			unlike = append(unlike, s)
		}
	}
	p.mu.Unlock()
	for _, s := range unlike {
		p.closeShare(s)
	}
}

// open mounts a share, unless another call has mounted it meanwhile.
func (p *Pool) open(ctx context.Context, address export.Address) (*Share, error) {
	if s := p.use(address); s != nil {
		return s, nil
	}
	p.giveWay(address)
	root, err := p.mounter.Open(ctx, address)
	if err != nil {
		p.trust(address)
		return nil, err
	}
	s := newShare(p, address, root)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errors.Join(backends.Errorf(backends.Unavailable, "the driver is stopping"), s.close())
	}
	if doubted := p.shares[key(address)]; doubted != nil && doubted.users == 0 { // Otherwise its last user closes it.
		go p.closeShare(doubted)
	}
	s.users = 1
	p.shares[key(address)] = s
	p.log.DebugContext(ctx, "share is mounted", "share", address.String(), "version", root.Version)
	return s, nil
}

// retain takes a share once more; false when it has been dropped.
func (p *Pool) retain(s *Share) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.users == 0 && p.shares[key(s.Address)] != s {
		return false
	}
	s.users++
	return true
}

// release gives a share back. The last release starts the timer for dropping it.
func (p *Pool) release(s *Share) {
	p.mu.Lock()
	s.users--
	s.used = time.Now()
	unused := s.users == 0
	dropped := unused && p.shares[key(s.Address)] != s
	if unused && !dropped && !s.clocked {
		s.clocked = true
		time.AfterFunc(p.idle, func() { p.expire(s) })
	}
	p.mu.Unlock()
	if dropped {
		p.closeShare(s)
	}
}

// expire drops a share that was idle for long enough.
func (p *Pool) expire(s *Share) {
	if p.take(s) {
		p.closeShare(s)
	}
}

// Drop unmounts an unused share now, without waiting for the idle time.
func (p *Pool) Drop(address export.Address) {
	p.mu.Lock()
	s := p.shares[key(address)]
	unused := s != nil && s.users == 0
	if unused {
		delete(p.shares, key(address))
	}
	p.mu.Unlock()
	if unused {
		go p.closeShare(s)
	}
}

// take removes a share that has been idle for long enough, or restarts the timer.
func (p *Pool) take(s *Share) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shares[key(s.Address)] != s || s.users > 0 {
		s.clocked = false // The last user starts it again.
		return false
	}
	if left := p.idle - time.Since(s.used); left > 0 {
		time.AfterFunc(left, func() { p.expire(s) })
		return false
	}
	delete(p.shares, key(s.Address))
	return true
}

// discard makes the next call mount the share anew.
func (p *Pool) discard(s *Share) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shares[key(s.Address)] == s {
		delete(p.shares, key(s.Address))
	}
}

// doubt makes the next call mount the share anew, because its server has not answered for long. The server's name may
// lead to another address by now, and a mount keeps the one that it began with.
func (p *Pool) doubt(s *Share) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.doubted = true
}

// trust makes the next call use the present mount of a share, because it could not be mounted anew. The server may
// answer there again, even if new mounts are impossible, for example without name resolution.
func (p *Pool) trust(address export.Address) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.shares[key(address)]; s != nil {
		s.doubted = false
	}
}

// closeShare unmounts a share, which takes the kernel some time. No caller waits for that.
func (p *Pool) closeShare(s *Share) {
	if err := s.close(); err != nil {
		p.log.Warn("a share could not be taken down", "share", s.Address.String(), "error", err)
	}
}

// Mounted returns the mounted shares, for a look at each. They may be gone the next moment.
func (p *Pool) Mounted() []export.Address {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []export.Address
	for _, s := range p.shares {
		all = append(all, s.Address)
	}
	return all
}

// GivenUp returns the number of hanging calls to servers for which no caller waits any more.
func (p *Pool) GivenUp() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	count := p.opening.GivenUp()
	for _, s := range p.shares {
		count += s.calls.GivenUp()
	}
	return count
}

// Close drops all shares. A share with a hanging call is dropped when that has ended, or with the process.
func (p *Pool) Close() {
	p.mu.Lock()
	var unused []*Share
	for _, s := range p.shares {
		if s.users == 0 {
			unused = append(unused, s)
		}
	}
	p.closed, p.shares = true, map[string]*Share{}
	p.mu.Unlock()
	for _, s := range unused {
		go p.closeShare(s)
	}
}

package nfs

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
	"github.com/stowage-csi/stowage/pkg/failure"
)

const (
	// givenBack is in place of the name of a permit that was given back.
	givenBack = "given back"
	// askedKept is how many calls are remembered that were turned away.
	askedKept = 1000
	// apart is how much later than the answer to a call that was turned away the same call must come to be a new one. The
	// sidecars wait ten times as long. An old call may have been sent twice, and the second be read from the socket while
	// the first is answered.
	apart = 100 * time.Millisecond
	// mostLooks is how often others' permits are looked for at a call, at most.
	mostLooks = 8
)

// permits are this controller's permits to make and remove things, one on each share for each class of calls. A permit
// is a file there; who is called removes those of all others for that class first. So a controller that was stopped
// finds that it has none when it goes on, and turns away what it was asked for before: others may have done that since,
// and deleted it. Whoever still wants it asks again, and for him it gets a new one.
type permits struct {
	owner string // begins the names of this controller's: those of an earlier run of it are nobody's
	apart time.Duration
	lock  *os.File // on the file of the name; nil where there is none

	mu  sync.Mutex
	all map[permitted]*permit
}

// permitted is what a permit is for.
type permitted struct {
	home  homeID
	key   string // which others cannot copy with the share's identity
	class class
}

// class is a sort of calls, each of which one sidecar makes. The sidecars elect their leaders each for itself, so that
// those of several controllers lead at a time as a rule: a call of one class does not say that those of another come
// from elsewhere now. All calls that make or remove a thing are of one class, so that a late one never comes to a thing
// that calls of another class have made and removed.
type class string

const (
	volumeCalls   class = "volumes"
	snapshotCalls class = "snapshots" // and groups of them
	changeCalls   class = "changes"   // of a volume's record
)

// calls is the class of those that make and remove what is of the kind.
func (k kind) calls() class {
	if k == volumeKind {
		return volumeCalls
	}
	return snapshotCalls
}

// permit is the one on a share for a class.
type permit struct {
	class class
	mu    sync.Mutex
	name  string               // of the file; empty for one that never was
	turn  uint64               // changes when it is made anew, after it was taken away
	asked map[string]time.Time // the calls that were turned away since it was made, and when
}

func (p *permits) on(h *share.Home, c class) *permit {
	p.mu.Lock()
	defer p.mu.Unlock()
	key, _ := h.ID("permits", "") // Without the key nothing is made; what is there is removed and changed all the same.
	what := permitted{h.Identity(), key, c}
	if p.all[what] == nil {
		p.all[what] = &permit{class: c}
	}
	return p.all[what]
}

// fresh is the name of a permit that nobody has had.
func (p *permits) fresh(c class) string { return p.owner + "." + string(c) + "." + share.Random() }

// concerns reports whether a permit of that name is for calls of the class. Those of an earlier version of the driver
// are for all.
func (c class) concerns(name string) bool {
	_, rest, _ := strings.Cut(name, ".")
	of, _, named := strings.Cut(rest, ".")
	return !named || of == string(c)
}

// lead ends the permits of all other controllers on a share for a class of calls, and returns the turn of our own.
// Where there is no room for one the call goes on without: it may need none. Kinds: Busy where others were called since
// our last call, if any: then this call may be from before, unless it is made again.
func (e *engine) lead(ctx context.Context, h *share.Home, c class, call string) (turn uint64, err error) {
	p := e.permits.on(h, c)
	p.mu.Lock()
	defer p.mu.Unlock()
	names, err := p.listed(h)
	if err != nil {
		return 0, err
	}
	if !slices.Contains(names, p.name) {
		if ctx.Err() != nil { // Nobody hears an answer now, so that the next such call is no second one.
			return 0, ctx.Err()
		}
		if p.overtaken(names, e.permits.owner) && !p.again(call, backends.Arrival(ctx).Add(-e.permits.apart)) {
			return 0, backends.Errorf(backends.Busy, "%w", errOvertaken)
		}
		err := p.renew(h, e.permits)
		if err == nil {
			names, err = p.unrivalled(h, names, call)
		} else if failure.IsAny(err, unix.ENOSPC, unix.EDQUOT, unix.EROFS) {
			err = nil
		}
		if err != nil {
			return 0, err
		}
	}
	return p.turn, p.alone(h, names)
}

// listed are the permits on a share that are for calls of the class.
func (p *permit) listed(h *share.Home) ([]string, error) {
	if err := h.Charge(0); err != nil { // The call may have ended while others had the mutex.
		return nil, err
	}
	if err := ignoreGone(h.Refresh(share.Controllers)); err != nil {
		return nil, err
	}
	names, err := h.Names(share.Controllers, "")
	if err = ignoreGone(err); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(names, func(name string) bool { return !p.class.concerns(name) }), nil
}

// alone ends the permits of all others. One that was spent just before has left another in its place, which was not
// there when we looked: so it looks until there is none. Kinds: Busy where there always are more.
func (p *permit) alone(h *share.Home, names []string) (err error) {
	for range mostLooks {
		others := slices.DeleteFunc(names, func(name string) bool { return name == p.name })
		if len(others) == 0 {
			return nil
		}
		for _, other := range others {
			if ended := h.Charge(0); ended != nil {
				return ended
			}
			err = errors.Join(err, h.Remove(share.Controllers, other))
		}
		if err != nil {
			return err
		}
		if names, err = p.listed(h); err != nil {
			return err
		}
	}
	return backends.Errorf(backends.Busy, "%w", errOvertaken)
}

// errOvertaken says that a call may be from before another controller was called.
var errOvertaken = errors.New("another controller was at work on the share: ask again, which has this one take over")

// overtaken reports whether others may have done what we are called for.
func (p *permit) overtaken(names []string, owner string) bool {
	others := slices.ContainsFunc(names, func(name string) bool { return !strings.HasPrefix(name, owner+".") })
	return p.name != "" || others
}

// again reports whether such a call was turned away before a time, and notes that it is now.
func (p *permit) again(call string, before time.Time) bool {
	if at, ok := p.asked[call]; ok {
		return at.Before(before)
	}
	p.turnAway(call)
	return false
}

// turnAway notes a call that is turned away.
func (p *permit) turnAway(call string) {
	if p.asked == nil || len(p.asked) >= askedKept {
		p.asked = map[string]time.Time{}
	}
	p.asked[call] = time.Now()
}

func (p *permit) renew(h *share.Home, all *permits) error {
	name := all.fresh(p.class)
	if err := h.Permit(name); err != nil {
		return err
	}
	p.name, p.asked = name, nil
	p.turn++
	return nil
}

// unrivalled gives a new permit back if others have got one since those that were there before: we may have been
// stopped in between, and they may have done what we are called for. Kinds: Busy then. Else it returns those that are
// there now.
func (p *permit) unrivalled(h *share.Home, before []string, call string) (names []string, err error) {
	names, err = p.listed(h)
	rival := func(name string) bool { return name != p.name && !slices.Contains(before, name) }
	if err == nil && !slices.ContainsFunc(names, rival) {
		return names, nil
	}
	mine := p.name
	p.name = givenBack
	if err = errors.Join(err, h.Remove(share.Controllers, mine)); err != nil {
		return nil, err
	}
	p.turnAway(call)
	return nil, backends.Errorf(backends.Busy, "%w", errOvertaken)
}

// spend makes something else of the permit of a turn, such as an attempt's token, in one step that fails when another
// controller was called since. The next permit is there before: it counts only if that step succeeds. Kinds: Busy;
// Exhausted where there is no room for a permit.
func (e *engine) spend(h *share.Home, c class, turn uint64, use func(permit string) error) error {
	p := e.permits.on(h, c)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.turn != turn {
		return backends.Errorf(backends.Busy, "%w", errOvertaken)
	}
	next := e.permits.fresh(c)
	if err := h.Permit(next); err != nil {
		return err
	}
	err := fs.ErrNotExist // There was no room for one when the call came.
	if p.name != "" {
		err = use(p.name)
	}
	if err == nil {
		p.name = next
		return nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = backends.Errorf(backends.Busy, "%w: %w", errOvertaken, err)
	}
	return errors.Join(err, h.Remove(share.Controllers, next))
}

// rename gives our permit another name, in one step that fails when another controller was called since. Who has looked
// at the permits before, and has none of its own yet, finds a rival then. Kinds: Busy, also where there is no permit.
func (e *engine) rename(h *share.Home, c class) error {
	p := e.permits.on(h, c)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := h.Charge(0); err != nil {
		return err
	}
	fresh, err := e.permits.fresh(c), fs.ErrNotExist
	if p.name != "" {
		err = h.RenamePermit(p.name, fresh)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return backends.Errorf(backends.Busy, "%w", errOvertaken)
	case err == nil:
		p.name = fresh
	}
	return err
}

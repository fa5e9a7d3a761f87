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
	// givenBack replaces the name of a permit that was given back.
	givenBack = "given back"
	// askedKept is the number of remembered calls that were turned away.
	askedKept = 1000
	// apart is the minimum time between the answer to a call that was turned away and the same call again, if that is to
	// count as new. The sidecars wait ten times as long. An old call may have been sent twice, and the second copy be read
	// from the socket while the first is answered.
	apart = 100 * time.Millisecond
	// mostLooks is the maximum number of looks for others' permits in one call.
	mostLooks = 8
)

// permits are this controller's permits to create and remove items, one on each share for each class of calls. A permit
// is a file there. A controller that is called first removes the permits of all others for that class. So a controller
// that was stopped finds no permit when it resumes, and turns its earlier calls away: others may have done them since,
// and deleted the result. For a caller that retries, it gets a new permit.
type permits struct {
	owner string // begins the names of this controller's permits: those of its earlier run are unused
	apart time.Duration
	lock  *os.File // on the file of the name; nil if there is no lock

	mu  sync.Mutex
	all map[permitted]*permit
}

// permitted identifies a permit.
type permitted struct {
	home  homeID
	key   string // which cannot be copied with the share's identity
	class class
}

// class is a class of calls, all of which one sidecar makes. Each sidecar elects its own leader, so usually several
// controllers lead at a time: a call of one class does not show that those of another class now come to another
// controller. All calls that create or remove an item are of one class. So a late one never meets an item that calls of
// another class have created and removed.
type class string

const (
	volumeCalls   class = "volumes"
	snapshotCalls class = "snapshots" // and groups of them
	changeCalls   class = "changes"   // of a volume's record
)

// calls returns the class of the calls that create and remove items of the kind.
func (k kind) calls() class {
	if k == volumeKind {
		return volumeCalls
	}
	return snapshotCalls
}

// permit is the permit on a share for a class.
type permit struct {
	class class
	mu    sync.Mutex
	name  string               // of the file; empty if there never was one
	turn  uint64               // changes when the permit is created again, after it was taken away
	asked map[string]time.Time // the calls that were turned away since its creation, and when
}

func (p *permits) on(h *share.Home, c class) *permit {
	p.mu.Lock()
	defer p.mu.Unlock()
	key, _ := h.ID("permits", "") // Without the key, nothing can be created, but items can be removed and changed.
	what := permitted{h.Identity(), key, c}
	if p.all[what] == nil {
		p.all[what] = &permit{class: c}
	}
	return p.all[what]
}

// fresh returns a unique name of a permit.
func (p *permits) fresh(c class) string { return p.owner + "." + string(c) + "." + share.Random() }

// concerns reports whether a permit of that name is for calls of the class. Permits of an earlier version of the driver
// are for all classes.
func (c class) concerns(name string) bool {
	_, rest, _ := strings.Cut(name, ".")
	of, _, named := strings.Cut(rest, ".")
	return !named || of == string(c)
}

// lead ends the permits of all other controllers on a share for a class of calls, and returns the turn of our own. If
// there is no room for a permit, the call continues without one, because it may need none. Kinds: Busy if others were
// called since our last call, or at all before our first: then this call may be from before, unless it is repeated.
func (e *engine) lead(ctx context.Context, h *share.Home, c class, call string) (turn uint64, err error) {
	p := e.permits.on(h, c)
	p.mu.Lock()
	defer p.mu.Unlock()
	names, err := p.listed(h)
	if err != nil {
		return 0, err
	}
	if !slices.Contains(names, p.name) {
		if ctx.Err() != nil { // No caller gets an answer now, so the next such call is not a repetition.
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

// listed returns the permits on a share that are for calls of the class.
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

// alone ends the permits of all others. A permit that was spent just before has left another in its place, which was
// not listed yet, so alone repeats the look until there is none. Kinds: Busy where there always are more.
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

// errOvertaken says that a call may be from before a call to another controller.
var errOvertaken = errors.New("another controller was at work on the share: ask again, which has this one take over")

// overtaken reports whether others may have done this call already.
func (p *permit) overtaken(names []string, owner string) bool {
	others := slices.ContainsFunc(names, func(name string) bool { return !strings.HasPrefix(name, owner+".") })
	return p.name != "" || others
}

// again reports whether such a call was turned away before a time, and notes that it is turned away now if it was not.
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

// unrivalled gives a new permit back if others have got one since the list before. This process may have been stopped
// in between, and they may have done this call already. Kinds: Busy then. Otherwise it returns the current permits.
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

// spend turns the permit of a turn into something else, such as an attempt's token, in one step that fails when another
// controller was called since. The next permit is created before that and counts only if that step succeeds. Kinds:
// Busy; Exhausted where there is no room for a permit.
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

// rename gives our permit another name, in one step that fails when another controller was called since. A controller
// that has listed the permits before, and has none of its own yet, then finds a rival. Kinds: Busy, also where there is
// no permit.
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

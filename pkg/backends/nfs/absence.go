package nfs

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// IsAbsent reports whether the share that the Spec names has no volume of the name, nor gets it. Whatever topology is
// required, no call for the Spec makes it on another. Nothing is proven of a share that is not known.
func (e *controllerSide) IsAbsent(ctx context.Context, spec backends.Spec) bool {
	p, err := e.target(spec)
	if err == nil {
		err = e.lookAt(ctx, p, volumeKind, spec.Name, func(s *share.Share) (*share.Home, error) { return e.homeKnown(s, p) })
	}
	return e.unproven.told(ctx, p, volumeKind, spec.Name, err)
}

// IsSnapshotAbsent reports the same of a snapshot, on the share of its volume.
func (e *controllerSide) IsSnapshotAbsent(ctx context.Context, spec backends.SnapshotSpec) bool {
	hd, err := e.parse(volumeKind, spec.Volume)
	return e.isAbsentBeside(ctx, hd, err, snapshotKind, spec.Name)
}

// IsGroupAbsent reports the same of a group, on the share of its volumes.
func (e *controllerSide) IsGroupAbsent(ctx context.Context, spec backends.GroupSpec) bool {
	hd, err := e.shareOf(spec.Volumes)
	return e.isAbsentBeside(ctx, hd, err, groupKind, spec.Name)
}

// isAbsentBeside reports whether there is nothing of the name on a volume's share, nor comes to be. The handle says
// which share that is, unless it failed to.
func (e *controllerSide) isAbsentBeside(ctx context.Context, hd handle, err error, k kind, name string) bool {
	p := place{hd.address, hd.share}
	if err == nil {
		err = e.lookAt(ctx, p, k, name, func(s *share.Share) (*share.Home, error) { return e.homeOf(s, hd) })
	}
	return e.unproven.told(ctx, p, k, name, err)
}

// lookAt fails unless there is nothing of the name on the share at a place, and nothing comes of any call. It looks
// while no other look works on that share: a flood of refusals costs the server one look at a time, and takes no turns
// from other calls. Kinds: as absent and Pool.With; Busy beside another look, which is errLooking.
func (e *engine) lookAt(ctx context.Context, p place, k kind, name string,
	home func(s *share.Share) (*share.Home, error)) error {
	ended, err := e.onlyLook(p)
	if err != nil {
		return err
	}
	// A look that outlives its call has all calls on the share refused, and so the next look too.
	defer ended()
	ctx, cancel := looking(ctx)
	defer cancel()
	return e.pool.With(ctx, p.Address, "looking whether there is no "+string(k),
		func(ctx context.Context, s *share.Share) error {
			h, err := home(s)
			if err != nil {
				return err
			}
			m := &making{engine: e, share: s, home: h, place: p}
			return m.absent(ctx, k, name)
		})
}

// errLooking says that another look works on the share.
var errLooking = errors.New("another look at the share is under way: ask again")

// onlyLook has this look be the only one on a share until ended is called. Kinds: Busy beside another one.
func (e *engine) onlyLook(p place) (ended func(), err error) {
	ended, ok, _ := e.locks.TryLock("a look at " + p.Server + ":" + p.Path)
	if !ok {
		return nil, backends.Errorf(backends.Busy, "%w", errLooking)
	}
	return ended, nil
}

// leastLook is how long a look has at least. With less it is not begun.
const leastLook = time.Second

// looking is the context of a look, which has half of the time that the call has left: the refusal is heard whatever
// becomes of it.
func looking(call context.Context) (context.Context, context.CancelFunc) {
	until, limited := call.Deadline()
	if !limited {
		return context.WithCancel(call)
	}
	half := time.Until(until) / 2
	if half < leastLook {
		half = 0
	}
	return context.WithTimeout(call, half)
}

// homeKnown is the home on the share at a place where this process has made something, or found it by its name or its
// handle. What is not known so may be an empty directory that a server exports in the place of the right share, whose
// disk is away, and says nothing of what is on that one. Kinds: Unavailable.
func (e *engine) homeKnown(s *share.Share, p place) (*share.Home, error) {
	h, err := homeOn(s)
	if err == nil && !e.known.confirms(p, h.Identity()) {
		err = backends.Errorf(backends.Unavailable,
			"it is not known that %s is the share that it was: make a volume there, or delete or change one that is "+
				"there", s.Address)
	}
	return h, err
}

// absent fails unless there is nothing of the name on the share, and nothing comes of any call. What other controllers
// were called for before comes to nothing without their permits, which end first. An attempt that has its token may be
// published yet: the copy of a call that will come again, as a rule, so that it is not ended. Changes of a volume are
// ended, also of one that is there, since one that is late would bring back what was just buried. A look that is turned
// away is none for a creation: nobody is told to ask for that again. Kinds: Busy; those of the looks.
func (m *making) absent(ctx context.Context, k kind, name string) error {
	m.home = m.home.Until(ctx)
	id, err := m.home.ID(string(k), name)
	if err != nil {
		return err
	}
	unlock, err := m.tryLock(m.share, k, id) // What is listed does not change by a look.
	if err != nil {
		return err
	}
	defer unlock()
	turn, err := m.lead(ctx, m.home, k.calls(), "proving "+id)
	if err == nil {
		err = m.rename(m.home, k.calls())
	}
	if err != nil {
		return err
	}
	begun, err := m.begun(k, id)
	if err != nil {
		return err
	}
	if begun {
		return backends.Errorf(backends.Busy, "%s is being made", name)
	}
	if k == volumeKind {
		if err := endChanges(m.home, id, ""); err != nil {
			return err
		}
	}
	if err := m.gone(m.home, k, id, nil); err != nil {
		return err
	}
	return m.stillLeads(m.home, k.calls(), turn)
}

// begun reports whether an attempt at the thing with the ID is under way, or a dead one has left its token. Those of an
// earlier version of the driver have a record in making. Kinds: Unavailable where another share is in the place of this
// one, which has none, or has another key than it had, so that the thing has another ID.
func (m *making) begun(k kind, id string) (bool, error) {
	_, err := m.home.Look(share.Making, string(k)+"-"+id+suffix)
	if !errors.Is(err, fs.ErrNotExist) {
		return err == nil, err
	}
	tokens, err := tokensOf(m.home, id)
	if err == nil && len(tokens) == 0 {
		err = errors.Join(m.home.Check(), m.home.CheckKey())
	}
	return len(tokens) > 0, err
}

// stillLeads fails unless our permit of the turn is on the share, and no other for such calls is. It shows controllers
// that hear of an earlier call only now that others were called since. On a full share there may be none; and one that
// was made anew since the turn does not show that nobody was called in between. Kinds: Busy.
func (e *engine) stillLeads(h *share.Home, c class, turn uint64) error {
	p := e.permits.on(h, c)
	p.mu.Lock()
	defer p.mu.Unlock()
	names, err := p.listed(h)
	if err == nil && (p.turn != turn || !slices.Equal(names, []string{p.name})) {
		err = backends.Errorf(backends.Busy, "%w", errOvertaken)
	}
	return err
}

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

// IsAbsent reports whether the share that the Spec names has no volume of this name and will not get one. Whatever
// topology is required, no call for the Spec creates it on another share. Nothing is proven about an unknown share.
func (e *controllerSide) IsAbsent(ctx context.Context, spec backends.Spec) bool {
	p, err := e.target(spec)
	if err == nil {
		err = e.lookAt(ctx, p, volumeKind, spec.Name, func(s *share.Share) (*share.Home, error) { return e.homeKnown(s, p) })
	}
	return e.unproven.told(ctx, p, volumeKind, spec.Name, err)
}

// IsSnapshotAbsent reports the same for a snapshot, on the share of its volume.
func (e *controllerSide) IsSnapshotAbsent(ctx context.Context, spec backends.SnapshotSpec) bool {
	hd, err := e.parse(volumeKind, spec.Volume)
	return e.isAbsentBeside(ctx, hd, err, snapshotKind, spec.Name)
}

// IsGroupAbsent reports the same for a group, on the share of its volumes.
func (e *controllerSide) IsGroupAbsent(ctx context.Context, spec backends.GroupSpec) bool {
	hd, err := e.shareOf(spec.Volumes)
	return e.isAbsentBeside(ctx, hd, err, groupKind, spec.Name)
}

// isAbsentBeside reports whether no item of the name exists on a volume's share or will exist there. The handle names
// the share, unless err says that it could not be parsed.
func (e *controllerSide) isAbsentBeside(ctx context.Context, hd handle, err error, k kind, name string) bool {
	p := place{hd.address, hd.share}
	if err == nil {
		err = e.lookAt(ctx, p, k, name, func(s *share.Share) (*share.Home, error) { return e.homeOf(s, hd) })
	}
	return e.unproven.told(ctx, p, k, name, err)
}

// lookAt fails unless the share at a place has no item of the name and no call will create one. Only one look at a
// share runs at a time. So a flood of refusals costs the server one look at a time, and takes no turns from other
// calls. Kinds: as absent and Pool.With; Busy beside another look, which is errLooking.
func (e *engine) lookAt(ctx context.Context, p place, k kind, name string,
	home func(s *share.Share) (*share.Home, error)) error {
	ended, err := e.onlyLook(p)
	if err != nil {
		return err
	}
	// After a look that outlives its call, all calls on the share are refused, including the next look.
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

// errLooking says that another look at the share is under way.
var errLooking = errors.New("another look at the share is under way: ask again")

// onlyLook makes this the only look at a share until ended is called. Kinds: Busy beside another one.
func (e *engine) onlyLook(p place) (ended func(), err error) {
	ended, ok, _ := e.locks.TryLock("a look at " + p.Server + ":" + p.Path)
	if !ok {
		return nil, backends.Errorf(backends.Busy, "%w", errLooking)
	}
	return ended, nil
}

// leastLook is the minimum time of a look. A look with less time is not begun.
const leastLook = time.Second

// looking returns the context of a look. It has half of the time that the call has left, so that the caller gets the
// refusal in any case.
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

// homeKnown returns the home of a share on which this process has created an item, or has found one by its name or its
// handle. Any other home may be in an empty directory that a server exports in place of the right share, because the
// share's disk is not mounted. It says nothing about that share's items. Kinds: Unavailable.
func (e *engine) homeKnown(s *share.Share, p place) (*share.Home, error) {
	h, err := homeOn(s)
	if err == nil && !e.known.confirms(p, h.Identity()) {
		err = backends.Errorf(backends.Unavailable,
			"it is not known that %s is the share that it was: make a volume there, or delete or change one that is "+
				"there", s.Address)
	}
	return h, err
}

// absent fails unless the share has no item of the name and no call will create one. It first ends the permits of other
// controllers: without them, their earlier calls have no effect. An attempt with a token is not ended: it may still be
// published, and is usually the copy of a call that will be retried. Changes of a volume are ended, even if the volume
// exists, because a late change would bring back a record that was just buried. Refusing a look is not refusing a
// creation: no caller is told to retry that. Kinds: Busy; those of the looks.
func (m *making) absent(ctx context.Context, k kind, name string) error {
	m.home = m.home.Until(ctx)
	id, err := m.home.ID(string(k), name)
	if err != nil {
		return err
	}
	unlock, err := m.tryLock(m.share, k, id) // A look does not change the list.
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

// begun reports whether an attempt at the item with the ID is under way, or a dead one has left its token. Attempts of
// an earlier version of the driver have a record in making. Kinds: Unavailable if another share is in the place of this
// one and thus has no attempts, or if the share's key has changed and the item thus has another ID.
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

// stillLeads fails unless our permit of the turn is on the share, and is the only one for such calls. The permit shows
// controllers that receive an earlier call only now that others were called since. A full share may have no permit. A
// permit that was recreated since the turn does not show that no other was called in between. Kinds: Busy.
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

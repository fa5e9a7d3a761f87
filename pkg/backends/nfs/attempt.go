package nfs

import (
	"context"
	"errors"
	"io/fs"
	"reflect"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
	"github.com/stowage-csi/stowage/pkg/failure"
	"github.com/stowage-csi/stowage/pkg/tree"
)

// errFenced says that an attempt has lost its token, so that it cannot be published any more.
var errFenced = errors.New("another call has begun it anew, or it was given up: ask again")

// making is one thing on its way from nothing to its place.
type making struct {
	*engine
	share   *share.Share
	home    *share.Home
	place   place
	origins []origin // one for each directory that is copied; none for an empty volume
	// required is how many bytes must be free before.
	required int64
	turn     uint64 // of the permit for it
}

// make makes the thing with the ID as planned, unless it is there. Kinds: Exists; Busy; the plan's.
func (m *making) make(ctx context.Context, k kind, id string, plan func() (*record, error)) (*record, error) {
	unlock, err := m.lock(m.share, k, id)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if m.turn, err = m.lead(ctx, m.home, k.calls(), "making "+id); err != nil {
		return nil, undecided(err)
	}
	r, err := m.attempt(ctx, k, id, plan)
	return r, m.refused(k, id, err)
}

// attempt begins to make the thing, or goes on.
func (m *making) attempt(ctx context.Context, k kind, id string, plan func() (*record, error)) (*record, error) {
	job := m.share.Address.String() + " " + string(k) + " " + id
	var want *record
	err := m.free(k, id)
	if err == nil {
		want, err = plan()
	}
	switch {
	case err != nil && again(err):
		return nil, err
	case err != nil: // It is there, or cannot be: a copy that waits for the next call is of no use.
		m.copies.drop(job)
		return nil, err
	case len(m.origins) == 0:
		return want, m.makeEmpty(ctx, want)
	}
	return m.makeCopy(ctx, job, want)
}

// again reports whether the next call may have another outcome without anybody's doing.
func again(err error) bool {
	switch classify(err) {
	case backends.Busy, backends.Unavailable, backends.Unknown:
		return true
	default:
		return false
	}
}

func (m *making) makeEmpty(ctx context.Context, r *record) error {
	err := m.draft(ctx, r)
	if err == nil {
		err = m.publish(ctx, r)
	}
	return m.orGivenUp(r, err)
}

// orGivenUp gives an attempt up that has failed.
func (m *making) orGivenUp(r *record, err error) error {
	if err = m.unlessFenced(r, err); err != nil {
		m.giveUp(m.share, m.home, r)
	}
	return err
}

// unlessFenced says of a failure that it comes from having lost the token: then the draft is gone, or another's data is
// in the place. Kinds: Busy then.
func (m *making) unlessFenced(r *record, err error) error {
	if !failure.IsAny(err, unix.ENOENT, unix.ESTALE) && !backends.Is(err, backends.Invalid) {
		return err
	}
	if m.home.Refresh(share.Staging) != nil {
		return err
	}
	if _, gone := m.home.Look(share.Staging, r.key()+suffix); errors.Is(gone, fs.ErrNotExist) {
		return backends.Errorf(backends.Busy, "%w", errFenced)
	}
	return err
}

// makeCopy publishes a copy that is made in the background, for this call or for an earlier one.
func (m *making) makeCopy(ctx context.Context, job string, want *record) (*record, error) {
	r, err := m.copies.run(ctx, job, want, m)
	if err != nil {
		return nil, err
	}
	if err = m.unlessFenced(r, m.publish(ctx, r)); err != nil && again(err) && !errors.Is(err, errFenced) {
		return nil, err // The next call tries it again with the same copy.
	}
	if err != nil {
		m.copies.drop(job)
		return nil, err
	}
	m.copies.done(job)
	return r, nil
}

// draft makes all that publish needs. Kinds: Exists; Exhausted.
func (m *making) draft(ctx context.Context, r *record) error {
	if err := m.begin(r); err != nil {
		return err
	}
	return m.fill(ctx, r, nil)
}

// fill makes what an attempt publishes, once it has begun. Kinds: those of the copy.
func (m *making) fill(ctx context.Context, r *record, progress *tree.Progress) error {
	for _, name := range r.drafts() {
		if err := m.share.Files().Mkdir(share.At(share.Staging, name), 0o700); err != nil {
			return err
		}
	}
	if len(m.origins) > 0 {
		if err := m.copyAll(ctx, r, progress); err != nil {
			return err
		}
	}
	switch {
	case r.Permissions != 0:
		return m.share.Files().Chmod(share.At(share.Staging, r.key()), fileMode(r.Permissions))
	case len(m.origins) == 0:
		return m.share.Files().Chmod(share.At(share.Staging, r.key()), defaultPermissions)
	}
	return nil
}

// begin writes the attempt's token, which is the record that publish needs, and ends all earlier attempts at the same.
// The draft comes afterwards: one without a token is nobody's. Kinds: Exists; Exhausted where there is no room.
func (m *making) begin(r *record) error {
	if err := m.room(); err != nil {
		return err
	}
	data, err := r.encode()
	if err != nil {
		return err
	}
	token := func(permit string) error { return m.home.Spend(permit, r.key()+suffix, data) }
	if err := m.spend(m.home, r.Kind.calls(), m.turn, token); err != nil {
		return err
	}
	if err := m.fence(m.share, m.home, r.ID, r.key()); err != nil {
		return err
	}
	return m.free(r.Kind, r.ID)
}

// fence ends all attempts at the thing with the ID but one: what has no token is never published, whoever wakes up with
// it.
func (e *engine) fence(s *share.Share, h *share.Home, id, but string) error {
	if err := h.Refresh(share.Staging); err != nil {
		return err
	}
	names, err := h.NamesOf(share.Staging, id+"-", suffix)
	if err != nil {
		return err
	}
	for _, name := range names {
		key, token := strings.CutSuffix(name, suffix)
		if !token || strings.Contains(key, ".") || key == but {
			continue
		}
		if err := h.Remove(share.Staging, key+suffix); err != nil {
			return err
		}
		e.janitors.add(s.Address) // which removes its draft
	}
	return nil
}

// free reports as Exists that there is something of that ID, which is in its place then. Kinds: Exists; as anywhere.
func (m *making) free(k kind, id string) error {
	r, err := m.anywhere(m.home, k, id)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = m.checkPlace(m.home, r)
	}
	if err == nil {
		err = m.putInPlace(m.share, m.home, r)
	}
	if err != nil {
		return err
	}
	return backends.Errorf(backends.Exists, "there is a %s of that name: it is %s", k, r.Handle)
}

// giveUp ends an attempt, writing nothing: without its token the janitor removes its draft.
func (e *engine) giveUp(s *share.Share, h *share.Home, r *record) {
	err := h.Remove(share.Staging, r.key()+suffix)
	if err == nil && r.Kind == volumeKind {
		err = e.unclaimDead(s, h, claimOf(r.SubDir), r.key())
	}
	if err != nil {
		e.log.Warn("what was given up could not be taken away yet", "share", s.Address.String(), "directory", r.SubDir,
			"error", err)
		e.janitors.sweepAgain(s.Address.String()) // Its claim may be left, and be all that is left.
	}
	e.janitors.add(s.Address)
}

// sameAs reports whether two attempts are at the same.
func (r *record) sameAs(want *record) bool {
	a, b := *r, *want
	for _, one := range []*record{&a, &b} {
		one.Turn, one.CreatedAt = "", time.Time{}
		var volumes []member
		for _, of := range one.Members {
			volumes = append(volumes, member{Volume: of.Volume})
		}
		one.Members = volumes
	}
	return reflect.DeepEqual(a, b)
}

package nfs

import (
	"errors"
	"io/fs"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
	"github.com/stowage-csi/stowage/pkg/failure"
)

// errFenced says that an attempt has lost its token, so that it cannot be published any more.
var errFenced = errors.New("another call has begun it anew, or it was given up: ask again")

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

// fence ends all attempts at the thing with the ID but one: what has no token is never published, whoever wakes up with
// it.
func (e *engine) fence(s *share.Share, h *share.Home, id, but string) error {
	tokens, err := tokensOf(h, id)
	if err != nil {
		return err
	}
	for _, token := range tokens {
		if token == but+suffix {
			continue
		}
		if err := h.Remove(share.Staging, token); err != nil {
			return err
		}
		e.janitors.add(s.Address) // which removes its draft
	}
	return nil
}

// tokensOf are the tokens of all attempts at the thing with the ID. The records of a group's snapshots beside them are
// none: without the group's token they are never published.
func tokensOf(h *share.Home, id string) ([]string, error) {
	if err := h.Refresh(share.Staging); err != nil {
		return nil, err
	}
	names, err := h.NamesOf(share.Staging, id+"-", suffix)
	isOther := func(name string) bool { return strings.Contains(strings.TrimSuffix(name, suffix), ".") }
	return slices.DeleteFunc(names, isOther), err
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

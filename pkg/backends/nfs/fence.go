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

// errFenced says that an attempt has lost its token, so that it can no longer be published.
var errFenced = errors.New("another call has begun it anew, or it was given up: ask again")

// orGivenUp gives up an attempt that has failed.
func (m *making) orGivenUp(r *record, err error) error {
	if err = m.unlessFenced(r, err); err != nil {
		m.giveUp(m.share, m.home, r)
	}
	return err
}

// unlessFenced replaces a failure that comes from a lost token. The draft is gone then, or another attempt's data is in
// the place. Kinds: Busy then.
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

// fence ends all attempts at the item with the ID except one. An attempt without a token is never published, even if
// its controller resumes later.
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

// tokensOf returns the tokens of all attempts at the item with the ID. The records of a group's snapshots beside them
// are no tokens: without the group's token they are never published.
func tokensOf(h *share.Home, id string) ([]string, error) {
	if err := h.Refresh(share.Staging); err != nil {
		return nil, err
	}
	names, err := h.NamesOf(share.Staging, id+"-", suffix)
	isOther := func(name string) bool { return strings.Contains(strings.TrimSuffix(name, suffix), ".") }
	return slices.DeleteFunc(names, isOther), err
}

// giveUp ends an attempt without writing anything: the janitor removes a draft without a token.
func (e *engine) giveUp(s *share.Share, h *share.Home, r *record) {
	err := h.Remove(share.Staging, r.key()+suffix)
	if err == nil && r.Kind == volumeKind {
		err = e.unclaimDead(s, h, claimOf(r.SubDir), r.key())
	}
	if err != nil {
		e.log.Warn("what was given up could not be taken away yet", "share", s.Address.String(), "directory", r.SubDir,
			"error", err)
		e.janitors.sweepAgain(s.Address.String()) // Its claim may be left, without any other trace.
	}
	e.janitors.add(s.Address)
}

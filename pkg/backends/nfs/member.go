package nfs

import (
	"context"
	"errors"
	"io/fs"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// member is a snapshot of a group.
type member struct {
	ID     string `json:"id"`
	Volume string `json:"volume"`
}

// membership is the group to which a snapshot belongs. The snapshot is there while the group's record is.
type membership struct {
	Handle string `json:"handle"`
	ID     string `json:"id"`
	Turn   string `json:"turn"`
}

// shown tells whether what a record speaks of is there for others: a snapshot of a group only with the group.
func (r *record) shown(h *share.Home) (bool, error) {
	if r.Group == nil {
		return true, nil
	}
	g, err := read(h, share.Groups, r.Group.ID+suffix)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && g.Turn == r.Group.Turn, err
}

// buildGroup makes the snapshots, which nobody sees before the group's record is in its place. It may be called again.
func (m *making) buildGroup(ctx context.Context, g *record) error {
	for _, of := range g.Members {
		if err := m.member(ctx, g, of); err != nil {
			return err
		}
	}
	return m.home.Remove(share.Staging, g.key()) // The draft of a group has nothing in it.
}

// member makes one snapshot of the group, unless an earlier call did.
func (m *making) member(ctx context.Context, g *record, of member) error {
	unlock, err := m.lock(m.share, snapshotKind, of.ID)
	if err != nil {
		return err
	}
	defer unlock()
	done, err := read(m.home, share.Snapshots, of.ID+suffix)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case done.Group != nil && done.Group.Turn == g.Turn:
		return nil
	default: // of a group of that name that was given up
		if err := m.discard(m.share, m.home, share.Snapshots, of.ID+suffix, done); err != nil {
			return err
		}
	}
	one := &making{engine: m.engine, share: m.share, home: m.home, place: m.place}
	one.origin = origin{kind: volumeKind, handle: of.Volume, anyInstant: g.Since.IsZero(), since: g.Since}
	size, err := one.origin.check(one)
	if err != nil {
		return err
	}
	r := &record{Kind: snapshotKind, ID: of.ID, Name: g.Name, SizeBytes: size, SourceVolume: of.Volume, Group: &membership{g.Handle, g.ID, g.Turn}}
	if err := one.complete(r); err != nil {
		return err
	}
	r.CreatedAt = g.CreatedAt
	_, err = one.make(ctx, r)
	if backends.Is(err, backends.Exists) {
		return backends.Errorf(backends.Busy, "another controller goes on with it: ask again")
	}
	return err
}

// discard gives a snapshot of a group to the janitor, from the folder where its record is.
func (e *engine) discard(s *share.Share, h *share.Home, folder, name string, r *record) error {
	err := h.Move(folder, name, share.Trash, r.key()+suffix)
	if errors.Is(err, fs.ErrNotExist) { // Somebody else was faster.
		return nil
	}
	if err != nil {
		return err
	}
	e.janitors.add(s.Address)
	return e.dispose(s, h, r)
}

// disposeMembers does with the snapshots of a group what dispose does with one. It may be called again.
func (e *engine) disposeMembers(s *share.Share, h *share.Home, g *record) error {
	for _, of := range g.Members {
		// In the order in which a snapshot goes through them, so that one that is just being finished is found.
		for _, at := range [][2]string{{share.Making, snapshotKind.makingName(of.ID)}, {share.Snapshots, of.ID + suffix}} {
			if err := e.disposeMember(s, h, g, at[0], at[1]); err != nil {
				return err
			}
		}
	}
	return nil
}

// disposeMember takes a snapshot of the group from a folder, if it is there.
func (e *engine) disposeMember(s *share.Share, h *share.Home, g *record, folder, name string) error {
	r, err := read(h, folder, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if r.Group == nil || r.Group.Turn != g.Turn { // Of a later group of that name.
		return nil
	}
	return e.discard(s, h, folder, name, r)
}

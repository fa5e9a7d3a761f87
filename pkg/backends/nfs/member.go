package nfs

import (
	"errors"
	"io/fs"

	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// member is a snapshot of a group.
type member struct {
	ID     string `json:"id"`
	Volume string `json:"volume"`
}

// membership is the group of a snapshot. The snapshot exists as long as the group's record exists.
type membership struct {
	Handle string `json:"handle"`
	ID     string `json:"id"`
	Turn   string `json:"turn"`
}

// shown reports whether the record's item exists for callers: a snapshot of a group exists only with the group.
func (r *record) shown(h *share.Home, find lookup) (bool, error) {
	if r.Group == nil {
		return true, nil
	}
	g, err := find(h, groupKind, r.Group.ID)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && g.Turn == r.Group.Turn, err
}

// writeMembers writes the records of a group's snapshots beside their data. They move to their places with it.
func (m *making) writeMembers(g *record) error {
	for i, of := range g.Members {
		r := &record{Kind: snapshotKind, ID: of.ID, Name: g.Name, SizeBytes: m.origins[i].size, SourceVolume: of.Volume,
			Group: &membership{g.Handle, g.ID, g.Turn}}
		if err := m.complete(r); err != nil {
			return err
		}
		r.CreatedAt, r.Turn = g.CreatedAt, g.Turn
		data, err := r.encode()
		if err != nil {
			return err
		}
		if err := m.home.Replace(share.Staging, g.draftOf(i)+suffix, data); err != nil {
			return err
		}
	}
	return nil
}

// disposeMembers disposes of the snapshots of a group. It may be called again.
func (e *engine) disposeMembers(s *share.Share, h *share.Home, g *record) error {
	for i, of := range g.Members {
		if err := e.disposeMember(s, h, g, of); err != nil {
			return err
		}
		// The data may have come to its place without its record.
		if err := moveDir(s.Dir(), share.At(share.Snapshots, of.ID+"-"+g.Turn), s.Dir(), share.At(share.Trash, g.draftOf(i)),
			false); err != nil {
			return err
		}
	}
	return nil
}

// disposeMember gives a snapshot of the group to the janitor, if its record exists.
func (e *engine) disposeMember(s *share.Share, h *share.Home, g *record, of member) error {
	r, err := read(h, share.Snapshots, of.ID+suffix)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	// It belongs to a later group of that name, which an earlier version of the driver created.
	if r.Group == nil || r.Group.Turn != g.Turn {
		return nil
	}
	if err := e.bury(h, r); err != nil {
		return ignoreGone(err) // Another controller was faster.
	}
	e.janitors.add(s.Address)
	return e.dispose(s, h, r)
}

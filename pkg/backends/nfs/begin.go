package nfs

import (
	"context"
	"errors"
	"io/fs"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
	"github.com/stowage-csi/stowage/pkg/tree"
)

// draft creates everything that publish needs. Kinds: Exists; Exhausted.
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

// begin writes the attempt's token, which is the record that publish needs, and ends all earlier attempts at the same
// item. The draft comes afterwards, because a draft without a token belongs to no attempt. Kinds: Exists; Exhausted
// where there is no room.
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

// free fails if an item has that ID, after moving it to its place. Kinds: Exists; as anywhere.
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

package node

import (
	"context"
	"reflect"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node/ledger"
)

// settled reports whether the volume is at its place and nothing is left to do.
func (st *staging) settled(context.Context) (bool, error) {
	old := st.record.Staged
	return st.present && old != nil && !old.Pending && old.Group == st.want.Group, nil
}

// debt implements setup.Debt with the ledger's record of an unfinished staging.
type debt struct{ *staging }

// Owed reports whether the volume is at its place and something is, or may be, left to do.
func (d debt) Owed(ctx context.Context) (bool, error) {
	done, err := d.settled(ctx)
	return d.present && !done, err
}

// Owe records the intent before anything is mounted. A directory without a group needs no other record: its root is
// known before the mount, and nothing follows the mount.
func (d debt) Owe(context.Context) error {
	intent := d.want
	intent.Pending = d.recipe.kind != ledger.Directory || d.want.Group != ""
	return d.put(intent)
}

// Settle records that everything is done.
func (d debt) Settle(context.Context) error {
	d.want.Pending = false
	return d.put(d.want)
}

// put records the staging unless the record is the same already.
func (st *staging) put(staged ledger.Staging) error {
	if st.record.Staged != nil && reflect.DeepEqual(*st.record.Staged, staged) {
		return nil
	}
	record := st.record.WithStaging(&staged)
	if err := st.service.ledger.Put(record); err != nil {
		return backends.Errorf(backends.KindOf(err), "record: %w", err)
	}
	st.record = record
	return nil
}

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

// debt is what the ledger knows of a staging that was cut short: setup.Debt.
type debt struct{ *staging }

// Owed reports whether the volume is at its place and something is left to do, or may be.
func (d debt) Owed(ctx context.Context) (bool, error) {
	done, err := d.settled(ctx)
	return d.present && !done, err
}

// Owe records the intent, before anything is mounted. Where nothing follows a mount whose root is known
// beforehand, this is the only record that is needed.
func (d debt) Owe(context.Context) error {
	intent := d.want
	intent.Pending = d.recipe.kind != ledger.Directory || d.want.Group != ""
	return d.put(intent)
}

// Settle records that all is done.
func (d debt) Settle(context.Context) error {
	d.want.Pending = false
	return d.put(d.want)
}

// put records the staging unless just that is recorded.
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

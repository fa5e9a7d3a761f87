package local

import (
	"context"
	"reflect"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// Modify changes a volume's mutable parameters; read-ahead takes effect the next time the volume is staged. Kinds:
// NotFound; Invalid when the pool's type does not have the parameter; Busy.
func (e *engine) Modify(ctx context.Context, handle string, mutable any) (err error) {
	defer annotate(&err, "modify volume", handle)
	change, err := backends.Given[Mutable](mutable)
	if err != nil {
		return err
	}
	v, err := e.stock.volumes.get(handle)
	if err != nil {
		return err
	}
	release, err := v.own(ctx)
	if err != nil {
		return err
	}
	defer release()
	record := *v.record.Load()
	change.applyTo(&record)
	if err := record.checkParameters(); err != nil {
		return err
	}
	if reflect.DeepEqual(record, *v.record.Load()) {
		return nil
	}
	return v.replaceRecord(&record)
}

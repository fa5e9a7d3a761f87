package local

import (
	"context"
	"errors"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// Expand grows a volume, even while it is in use. The node must grow the loop device and its contents. Kinds: NotFound;
// OutOfRange; Exhausted; Busy.
func (e *engine) Expand(ctx context.Context, handle string,
	wanted backends.CapacityRange) (result backends.Expansion, err error) {
	defer annotate(&err, "expand volume", handle)
	v, err := e.stock.volumes.get(handle)
	if err != nil {
		return result, err
	}
	release, err := v.own(ctx)
	if err != nil {
		return result, err
	}
	defer release()
	size, err := v.expand(ctx, wanted)
	if err != nil {
		return result, err
	}
	return backends.Expansion{CapacityBytes: size, NodeExpansion: v.pool.storage.device}, nil
}

// expand grows the volume and returns its size. The caller owns it.
func (v *volume) expand(ctx context.Context, wanted backends.CapacityRange) (int64, error) {
	r := v.record.Load()
	if wanted.LimitBytes != 0 && wanted.LimitBytes < r.SizeBytes {
		return 0, backends.Errorf(backends.OutOfRange,
			"it has %d bytes, which is more than the limit of %d, and cannot shrink",
			r.SizeBytes, wanted.LimitBytes)
	}
	if wanted.RequiredBytes <= r.size() && r.ExpandingFromBytes == 0 {
		return r.SizeBytes, nil
	}
	size, err := v.pool.storage.size(wanted, r.SizeBytes, r.SizeBytes)
	if err != nil {
		return 0, err
	}
	length, err := v.length(ctx)
	if err != nil {
		return 0, err
	}
	if err := v.take(ctx, size); err != nil {
		return 0, err
	}
	if err := v.grow(ctx, size); err != nil {
		// If undoing it fails too, the intent stays in the record, and its promise in the ledger.
		if undo := v.shrinkBack(r, length); undo != nil {
			return 0, backends.Errorf(backends.Unavailable, "growing it was interrupted: %w", errors.Join(err, undo))
		}
		v.giveRest()
		return 0, err
	}
	v.giveRest()
	return size, nil
}

// grow gives the volume a size. If a crash can leave the data larger than the record says, the record first announces
// the change and then confirms it.
func (v *volume) grow(ctx context.Context, size int64) error {
	r := *v.record.Load()
	if !v.pool.storage.recordsGrowth {
		r.SizeBytes = size
		if err := v.pool.storage.extend(ctx, v, &r); err != nil {
			return err
		}
		return v.replaceRecord(&r)
	}
	r.ExpandingFromBytes, r.SizeBytes = r.size(), size
	if err := v.replaceRecord(&r); err != nil {
		return err
	}
	return v.finishGrowing(ctx)
}

// finishGrowing completes the growth that the record announces. It is also called at start-up.
func (v *volume) finishGrowing(ctx context.Context) error {
	r := *v.record.Load()
	if err := v.pool.storage.extend(ctx, v, &r); err != nil {
		return err
	}
	r.ExpandingFromBytes = 0
	return v.replaceRecord(&r)
}

// shrinkBack undoes a failed expansion of data that had the length. The node does not know about it, so nothing uses
// the end that was added. The record gets its old contents; if the data could not be shrunk, the intent to grow stays
// in it.
func (v *volume) shrinkBack(before *volumeRecord, length int64) error {
	err := v.pool.storage.shrink(v, length)
	if err != nil && v.pool.storage.recordsGrowth {
		return err
	}
	record := *before
	return errors.Join(err, v.replaceRecord(&record))
}

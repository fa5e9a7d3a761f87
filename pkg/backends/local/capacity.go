package local

import (
	"context"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// take promises size bytes of the pool. Before it fails for lack of room, it waits briefly for removals and
// measurements. Kinds: Exhausted; Unavailable.
func (p *pool) take(ctx context.Context, size int64) error {
	err := p.ledger.take(ctx, size)
	if !backends.Is(err, backends.Exhausted) {
		return err
	}
	p.await(ctx)
	return p.ledger.take(ctx, size)
}

// take makes sure that size bytes are promised to the volume, including the rest of an earlier expansion. The caller
// owns the volume. Kinds: as of the pool.
func (v *volume) take(ctx context.Context, size int64) error {
	if size <= v.taken {
		return nil
	}
	if err := v.pool.take(ctx, size-v.taken); err != nil {
		return err
	}
	v.taken = size
	return nil
}

// giveRest gives back what is promised beyond the volume's size. The record on disk must equal the one in memory. The
// caller owns the volume.
func (v *volume) giveRest() {
	size := v.record.Load().SizeBytes
	v.pool.ledger.give(v.taken - size)
	v.taken = size
}

// await waits briefly for removals and measurements. A filesystem that does not report its free space is not measured.
func (p *pool) await(ctx context.Context) {
	limit := p.ledger.disk.disks.waiting.limits.Reclaim
	reclaim, stop := context.WithTimeout(ctx, limit)
	defer stop()
	_ = p.janitor.wait(reclaim) // Items that are still being removed take up room.
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if free, err := p.ledger.freeNow(ctx); err == nil {
		p.ledger.disk.measure(ctx, free)
	}
}

// Capacity returns the room for Create in the pool that the parameters name. The room of the filesystem for all its
// pools and the pool's own capacity bound it. Kinds: Unavailable when the filesystem does not say.
func (e *engine) Capacity(ctx context.Context, query backends.CapacityQuery) (result backends.Capacity, err error) {
	defer annotate(&err, "report capacity", "")
	p := e.poolFor(query)
	if p == nil {
		return result, nil
	}
	p.await(ctx)
	r, err := p.ledger.room(ctx)
	if err != nil {
		return result, err
	}
	whole := r.available / p.storage.step * p.storage.step
	return backends.Capacity{AvailableBytes: whole, LargestBytes: whole, SmallestBytes: p.storage.smallest}, nil
}

// poolFor returns the pool that can serve the query, or nil if no pool can.
func (e *engine) poolFor(query backends.CapacityQuery) *pool {
	parameters, err := parametersOf(query.Parameters)
	if err != nil || !e.place.Within(query.Topology) {
		return nil
	}
	p, err := e.pool(parameters.Pool)
	if err != nil || p.storage.access().Check(query.Access) != nil {
		return nil
	}
	if !p.storage.preallocates && parameters.Allocation == full {
		return nil
	}
	return p
}

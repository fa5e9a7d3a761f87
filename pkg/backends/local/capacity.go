package local

import (
	"context"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// take promises so many bytes of the pool. Before it says that there is no room, it waits a little for what
// is being removed and measured. Kinds: Exhausted; Unavailable.
func (p *pool) take(ctx context.Context, size int64) error {
	err := p.ledger.take(ctx, size)
	if !backends.Is(err, backends.Exhausted) {
		return err
	}
	p.await(ctx)
	return p.ledger.take(ctx, size)
}

// take has so many bytes promised for the volume. What an earlier expansion has left is part of them. The caller owns
// it. Kinds: as of the pool.
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

// giveRest gives back what is promised beyond the size of a volume whose record is on disk as it is here. The caller
// owns it.
func (v *volume) giveRest() {
	size := v.record.Load().SizeBytes
	v.pool.ledger.give(v.taken - size)
	v.taken = size
}

// await waits a little for what is being removed, and for what is to be measured. Who does not say what is free is not
// measured either.
func (p *pool) await(ctx context.Context) {
	limit := p.ledger.disk.disks.waiting.limits.Reclaim
	reclaim, stop := context.WithTimeout(ctx, limit)
	defer stop()
	_ = p.janitor.wait(reclaim) // What is still being removed takes its room.
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if free, err := p.ledger.freeNow(ctx); err == nil {
		p.ledger.disk.measure(ctx, free)
	}
}

// Capacity is the room of the pool that the parameters name, and what Create finds: no more than the filesystem has for
// all pools on it, and no more than the pool's own capacity. Kinds: Unavailable when the filesystem does not say.
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

// poolFor is the pool that can serve the query, or nil when none can.
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

package local

import (
	"context"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// Capacity is the room of the pool that the parameters name: what the ledger and the filesystem both have
// left. Kinds: Unavailable when the filesystem does not say.
func (e *engine) Capacity(ctx context.Context, query backends.CapacityQuery) (result backends.Capacity, err error) {
	defer annotate(&err, "report capacity", "")
	p := e.poolFor(query)
	if p == nil {
		return result, nil
	}
	p.janitor.wait(ctx, reclaimTime)
	available, err := p.ledger.available()
	if err != nil {
		return result, err
	}
	if p.kind == directory {
		return backends.Capacity{AvailableBytes: available, LargestBytes: available, SmallestBytes: 1}, nil
	}
	return backends.Capacity{AvailableBytes: available, LargestBytes: available / imageStep * imageStep, SmallestBytes: leastImage}, nil
}

// poolFor is the pool that can serve the query, or nil when none can.
func (e *engine) poolFor(query backends.CapacityQuery) *pool {
	parameters, err := parametersOf(query.Parameters)
	if err != nil || !e.place.Within(query.Topology) {
		return nil
	}
	p, err := e.pool(parameters.Pool)
	if err != nil || p.kind.access().Check(query.Access) != nil {
		return nil
	}
	if p.kind == directory && parameters.Allocation == full {
		return nil
	}
	return p
}

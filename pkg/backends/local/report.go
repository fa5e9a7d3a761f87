package local

import (
	"context"
	"sync"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/failure"
)

// Pools returns the pools of the configuration. A pool that cannot be used, or does not report its room, has the reason
// as its Problem, and delays no other.
func (e *engine) Pools(ctx context.Context) (pools []backends.Pool, err error) {
	defer annotate(&err, "tell of pools", "")
	pools = make([]backends.Pool, len(e.pools))
	var asked sync.WaitGroup
	for i, p := range e.pools {
		asked.Go(func() { pools[i] = e.poolNow(ctx, p) })
	}
	asked.Wait()
	return pools, ctx.Err()
}

func (e *engine) poolNow(ctx context.Context, p *pool) backends.Pool {
	pool := backends.Pool{Name: p.name, Type: string(p.storage.name)}
	capacity, err := e.Capacity(ctx, backends.CapacityQuery{Parameters: &Parameters{Pool: p.name}})
	pool.Capacity = capacity
	if trouble := p.trouble.Load(); trouble != nil {
		err = trouble.why
	}
	if err != nil {
		pool.Problem = failure.OneLine(err).Error()
	}
	return pool
}

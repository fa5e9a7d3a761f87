package local

import (
	"context"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/failure"
)

// Pools returns the pools of the configuration. One that cannot be used, or does not say what room it has, says why.
func (e *engine) Pools(ctx context.Context) (pools []backends.Pool, err error) {
	defer annotate(&err, "tell of pools", "")
	for _, p := range e.pools {
		pool := backends.Pool{Name: p.name, Type: string(p.kind)}
		pool.Capacity, err = e.Capacity(ctx, backends.CapacityQuery{Parameters: &Parameters{Pool: p.name}})
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if trouble := p.trouble.Load(); trouble != nil {
			err = trouble.why
		}
		if err != nil {
			pool.Problem = failure.OneLine(err).Error()
		}
		pools = append(pools, pool)
	}
	return pools, nil
}

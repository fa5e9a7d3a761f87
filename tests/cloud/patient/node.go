package patient

import (
	"context"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// node embeds the features that call only the kernel.
type node struct {
	backends.NodeBackend
	backends.Limiter
	backends.Locator
	backends.Meter
	m Manner
}

func (n node) Limit(ctx context.Context) (int64, error) { return must(ctx, n.m, n.Limiter.Limit) }

func (n node) Topology(ctx context.Context) (backends.Topology, error) {
	return must(ctx, n.m, n.Locator.Topology)
}

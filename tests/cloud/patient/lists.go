package patient

import (
	"context"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// page is the result of a list call.
type page[T any] struct {
	entries []T
	next    string
}

func pages[T any](ctx context.Context, m Manner,
	list func(ctx context.Context) ([]T, string, error)) ([]T, string, error) {
	p, err := must(ctx, m, func(ctx context.Context) (p page[T], err error) {
		p.entries, p.next, err = list(ctx)
		return p, err
	})
	return p.entries, p.next, err
}

func (c *controller) List(ctx context.Context, p backends.Page) ([]backends.Volume, string, error) {
	return pages(ctx, c.m, func(ctx context.Context) ([]backends.Volume, string, error) { return c.Lister.List(ctx, p) })
}

func (c *controller) ListHealth(ctx context.Context, p backends.Page) ([]backends.VolumeHealth, string, error) {
	return pages(ctx, c.m, func(ctx context.Context) ([]backends.VolumeHealth, string, error) {
		return c.HealthReporter.ListHealth(ctx, p)
	})
}

func (c *controller) ListSnapshots(ctx context.Context, volume string,
	p backends.Page) ([]backends.Snapshot, string, error) {
	return pages(ctx, c.m, func(ctx context.Context) ([]backends.Snapshot, string, error) {
		return c.SnapshotLister.ListSnapshots(ctx, volume, p)
	})
}

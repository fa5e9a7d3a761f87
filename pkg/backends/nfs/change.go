package nfs

import (
	"context"
	"sync/atomic"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// Expand records a larger size. NFS enforces none, so the node has nothing to do. Kinds: NotFound; OutOfRange;
// Exhausted; Busy.
func (e *controllerSide) Expand(ctx context.Context, handle string,
	wanted backends.CapacityRange) (result backends.Expansion, err error) {
	defer annotate(&err, "expand volume", handle)
	var size atomic.Int64
	err = e.rewriting(ctx, handle, "expanding a volume", func(s *share.Share, r *record) error {
		size.Store(r.SizeBytes)
		if wanted.LimitBytes != 0 && wanted.LimitBytes < r.SizeBytes {
			return backends.Errorf(backends.OutOfRange,
				"it has %d bytes, which is more than the limit of %d: volumes do not shrink", r.SizeBytes, wanted.LimitBytes)
		}
		if wanted.RequiredBytes <= r.SizeBytes {
			return nil
		}
		larger, err := wanted.Round(defaultSize, 1, 1)
		if err != nil {
			return err
		}
		_, free, err := s.Space()
		if err != nil {
			return err
		}
		if larger-r.SizeBytes > free {
			return backends.Errorf(backends.Exhausted, "%s has no room for %d more bytes: %d are free", s.Address,
				larger-r.SizeBytes, free)
		}
		r.SizeBytes = larger
		size.Store(larger)
		return nil
	})
	if err != nil {
		return backends.Expansion{}, err
	}
	return backends.Expansion{CapacityBytes: size.Load()}, nil
}

// Modify sets mutable parameters. Kinds: NotFound; Invalid; Busy.
func (e *controllerSide) Modify(ctx context.Context, handle string, mutable any) (err error) {
	defer annotate(&err, "modify volume", handle)
	m, err := backends.Given[Mutable](mutable)
	if err != nil {
		return err
	}
	return e.rewriting(ctx, handle, "modifying a volume", func(_ *share.Share, r *record) error {
		m.applyTo(r)
		if err := r.check(); err != nil {
			return backends.Errorf(backends.Invalid, "the volume cannot have that: %w", err)
		}
		return nil
	})
}

// applyTo sets the given parameters in a record.
func (m Mutable) applyTo(r *record) {
	if m.OnDelete != nil {
		r.OnDelete = *m.OnDelete
	}
}

// Capacity returns the share's free space as reported by the server. Sizes are labels, so all volumes share it. The
// capacity is zero if the query's parameters, access or topology are not possible. Kinds: Unavailable when the server
// does not answer.
func (e *controllerSide) Capacity(ctx context.Context,
	query backends.CapacityQuery) (result backends.Capacity, err error) {
	defer annotate(&err, "tell the capacity", "")
	p, err := e.target(backends.Spec{Parameters: query.Parameters})
	if err != nil || access(p.Version).Check(query.Access) != nil || !e.places.reach(p.Name, query.Topology) {
		return backends.Capacity{}, nil // No capacity is no failure.
	}
	var free atomic.Int64
	err = e.pool.With(ctx, p.Address, "reading the free space", func(_ context.Context, s *share.Share) error {
		_, available, err := s.Space()
		free.Store(available)
		return err
	})
	if err != nil {
		return backends.Capacity{}, err
	}
	return backends.Capacity{AvailableBytes: free.Load(), LargestBytes: free.Load(), SmallestBytes: 1}, nil
}

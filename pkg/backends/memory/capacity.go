package memory

import (
	"context"
	"maps"
	"slices"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// Capacity returns how much of the configured capacity is left.
func (b *backend) Capacity(ctx context.Context, query backends.CapacityQuery) (backends.Capacity, error) {
	if err := b.lock(ctx); err != nil {
		return backends.Capacity{}, err
	}
	defer b.mu.Unlock()
	if everyAccess().Check(query.Access) != nil || !b.zone.Within(query.Topology) {
		return backends.Capacity{}, nil
	}
	left := b.left()
	return backends.Capacity{AvailableBytes: left, LargestBytes: left - left%step, SmallestBytes: step}, nil
}

func (b *backend) left() int64 { return b.config.CapacityBytes - b.used }

// room returns a size in bytes that is in the range and fits the remaining room. The bytes in had are already taken.
func (b *backend) room(size backends.CapacityRange, preferred, least, had int64) (int64, error) {
	bytes, err := size.Round(preferred, least, step)
	if err != nil {
		return 0, err
	}
	if bytes > b.config.CapacityBytes {
		return 0, backends.Errorf(backends.OutOfRange, "%d bytes are more than the %d bytes of all the storage", bytes,
			b.config.CapacityBytes)
	}
	if bytes-had > b.left() {
		return 0, backends.Errorf(backends.Exhausted, "no room for %d bytes more: %d are left", bytes-had, b.left())
	}
	return bytes, nil
}

// TopologyKeys returns the key of the only segment: the zone.
func (b *backend) TopologyKeys() []string { return slices.Collect(maps.Keys(b.zone)) }

// Topology returns this node's zone.
func (b *backend) Topology(context.Context) (backends.Topology, error) {
	return maps.Clone(b.zone), nil
}

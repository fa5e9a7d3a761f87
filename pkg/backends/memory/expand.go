package memory

import (
	"context"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// Expand grows a volume. If the volume is in use, the node then adopts the new size.
func (b *backend) Expand(ctx context.Context, handle string, size backends.CapacityRange) (backends.Expansion, error) {
	if err := b.lock(ctx); err != nil {
		return backends.Expansion{}, err
	}
	defer b.mu.Unlock()
	v, err := b.volumes.get(handle)
	if err != nil {
		return backends.Expansion{}, err
	}
	if err := v.idle(handle); err != nil {
		return backends.Expansion{}, err
	}
	bytes, err := b.room(size, v.size, v.size, v.size)
	if err != nil {
		return backends.Expansion{}, err
	}
	if err := b.files.resize(handle, bytes); err != nil {
		return backends.Expansion{}, err
	}
	b.used += bytes - v.size
	v.size = bytes
	return backends.Expansion{CapacityBytes: bytes, NodeExpansion: true}, nil
}

// Modify changes a volume's mutable parameters.
func (b *backend) Modify(ctx context.Context, handle string, mutable any) error {
	if err := b.lock(ctx); err != nil {
		return err
	}
	defer b.mu.Unlock()
	v, err := b.volumes.get(handle)
	if err != nil {
		return err
	}
	m, err := backends.Given[Mutable](mutable)
	if err != nil {
		return err
	}
	m.apply(v)
	return nil
}

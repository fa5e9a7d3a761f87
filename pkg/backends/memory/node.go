package memory

import (
	"cmp"
	"context"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// Source describes the volume's directory or image, and notes that it is in use.
func (b *backend) Source(ctx context.Context, attachment backends.Attachment) (backends.Source, error) {
	if err := b.lock(ctx); err != nil {
		return nil, err
	}
	defer b.mu.Unlock()
	v, err := b.volumes.get(attachment.Handle)
	if err != nil {
		return nil, err
	}
	if err := v.idle(v.handle); err != nil {
		return nil, err
	}
	if err := b.files.check(v.handle); err != nil {
		return nil, err
	}
	if err := everyAccess().OfRaw(v.raw).CheckStaged(attachment.Type); err != nil {
		return nil, err
	}
	if attachment.Type == "" {
		attachment.Type = cmp.Or(v.lastType, backends.Mount)
	}
	var source backends.Source
	switch attachment.Type {
	case backends.Mount:
		source = backends.Directory{Path: b.files.data(v.handle)}
	case backends.Block:
		source = backends.Device{
			Path:         b.files.image(v.handle),
			Image:        true,
			Identity:     backends.Identity{SizeBytes: v.size},
			ReadAheadKiB: v.readAheadKiB,
		}
	default:
		return nil, backends.Errorf(backends.Unsupported, "access type %q is not supported: use mount or block",
			attachment.Type)
	}
	v.mounted, v.lastType = true, attachment.Type
	return source, nil
}

// Used reports whether the volume is in use.
func (b *backend) Used(ctx context.Context, handle string) bool {
	if b.lock(ctx) != nil {
		return true
	}
	defer b.mu.Unlock()
	v, err := b.volumes.get(handle)
	return err == nil && v.mounted
}

// Release notes that the volume is no longer in use.
func (b *backend) Release(ctx context.Context, handle string) error {
	if err := b.lock(ctx); err != nil {
		return err
	}
	defer b.mu.Unlock()
	if v, err := b.volumes.get(handle); err == nil {
		v.mounted = false
	}
	return nil
}

// Limit is the configured number of volumes per node.
func (b *backend) Limit(context.Context) (int64, error) { return b.config.MaxVolumesPerNode, nil }

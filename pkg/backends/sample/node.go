package sample

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// The mode of a record notes whether its volume is in use. Unlike a new file, a new mode needs no room: after a pod has
// filled the disk, it can come back, and make room.
const (
	idle  fs.FileMode = 0o600
	inUse fs.FileMode = 0o700
)

// Source describes the volume's directory, and notes that it is in use.
func (b *backend) Source(ctx context.Context, attachment backends.Attachment) (backends.Source, error) {
	if err := b.lock(ctx); err != nil {
		return nil, err
	}
	defer b.unlock()
	found, err := b.get(attachment.Handle)
	if err != nil {
		return nil, err
	}
	if err := found.Access.CheckStaged(attachment.Type); err != nil {
		return nil, err
	}
	if err := os.Chmod(b.file(found.Handle, ".json"), inUse); err != nil {
		return nil, backends.Errorf(backends.KindOf(err), "the use of the volume cannot be noted: %w", err)
	}
	b.volumes[found.Handle].used = true
	return backends.Directory{Path: b.file(found.Handle, "")}, nil
}

// Used reports whether the volume is in use.
func (b *backend) Used(ctx context.Context, handle string) bool {
	if b.lock(ctx) != nil {
		return true
	}
	defer b.unlock()
	v := b.volumes[handle]
	return v != nil && v.used
}

// Release notes that the volume is no longer in use. It succeeds on a disk that cannot be written to, because the
// memory counts: only the next process sees the volume as in use again.
func (b *backend) Release(ctx context.Context, handle string) error {
	if err := b.lock(ctx); err != nil {
		return err
	}
	defer b.unlock()
	v := b.volumes[handle]
	if v == nil {
		return nil
	}
	v.used = false
	if err := os.Chmod(b.file(handle, ".json"), idle); err != nil && !errors.Is(err, fs.ErrNotExist) {
		b.log.Warn("a volume stays noted as in use", "volume", handle, "error", err)
	}
	return nil
}

package backendtest

import (
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"sync"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// copiesWhileWritten copies volumes in use, one file after the other: the writer continues before "second" is copied.
type copiesWhileWritten struct {
	parts
	dirs *sync.Map // of the volumes, by the handles of their snapshots
}

func (b copiesWhileWritten) Clone(ctx context.Context, spec backends.Spec, source string) (*backends.Volume, error) {
	dir, err := b.free(ctx, source)
	if err != nil {
		return nil, err
	}
	v, err := b.parts.Clone(ctx, spec, source)
	if err != nil {
		return nil, err
	}
	return v, b.goOn(ctx, v, dir)
}

func (b copiesWhileWritten) CreateSnapshot(ctx context.Context,
	spec backends.SnapshotSpec) (*backends.Snapshot, error) {
	dir, err := b.free(ctx, spec.Volume)
	if err != nil {
		return nil, err
	}
	s, err := b.parts.CreateSnapshot(ctx, spec)
	if err == nil {
		b.dirs.Store(s.Handle, dir)
	}
	return s, err
}

func (b copiesWhileWritten) CreateGroup(ctx context.Context, spec backends.GroupSpec) (*backends.Group, error) {
	dirs := make([]string, len(spec.Volumes))
	for i, volume := range spec.Volumes {
		var err error
		if dirs[i], err = b.free(ctx, volume); err != nil {
			return nil, err
		}
	}
	g, err := b.parts.CreateGroup(ctx, spec)
	if err == nil {
		for i, s := range g.Snapshots {
			b.dirs.Store(s.Handle, dirs[i])
		}
	}
	return g, err
}

func (b copiesWhileWritten) Restore(ctx context.Context, spec backends.Spec,
	snapshot string) (*backends.Volume, error) {
	v, err := b.parts.Restore(ctx, spec, snapshot)
	if err != nil {
		return nil, err
	}
	dir, ok := b.dirs.Load(snapshot)
	if !ok {
		return v, nil
	}
	return v, b.goOn(ctx, v, dir.(string))
}

// free clears the note that a volume is in use, and returns its path.
func (b copiesWhileWritten) free(ctx context.Context, volume string) (string, error) {
	source, err := b.Source(ctx, backends.Attachment{Handle: volume, Type: backends.Mount})
	if err != nil {
		return "", err
	}
	return source.(backends.Directory).Path, b.Release(ctx, volume)
}

// goOn copies "second" after the writer has written it a few more times.
func (b copiesWhileWritten) goOn(ctx context.Context, v *backends.Volume, from string) error {
	to, err := b.free(ctx, v.Handle)
	if err != nil {
		return err
	}
	copied, err := os.ReadFile(filepath.Join(to, "second"))
	if err != nil {
		return nil //nolint:nilerr // It is the volume with the other file.
	}
	for ctx.Err() == nil {
		now, err := os.ReadFile(filepath.Join(from, "second"))
		if err != nil {
			return err
		}
		if binary.BigEndian.Uint64(now) > binary.BigEndian.Uint64(copied)+3 {
			return os.WriteFile(filepath.Join(to, "second"), now, 0o600)
		}
	}
	return ctx.Err()
}

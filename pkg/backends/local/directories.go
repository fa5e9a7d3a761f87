package local

import (
	"context"
	"os"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// directories is the storage for volumes that are directories on the pool's filesystem.
type directories struct{}

func (directories) fill(ctx context.Context, by copier, path string, _ *volumeRecord, o *origin) error {
	if o.storage == nil {
		return makeDirectory(path)
	}
	return by.copyTree(ctx, path, o.data)
}

// makeDirectory creates the root of a directory volume. Its mode does not depend on the process's umask.
func makeDirectory(path string) error {
	if err := os.Mkdir(path, 0o755); err != nil {
		return err
	}
	return os.Chmod(path, 0o755)
}

func (directories) capture(ctx context.Context, by copier, copies []dataCopy) error {
	for _, c := range copies {
		if err := by.copyTree(ctx, c.to, c.from); err != nil {
			return err
		}
	}
	return nil
}

func (directories) source(path string, _ os.FileInfo, _ *volumeRecord) (backends.Source, error) {
	return backends.Directory{Path: path}, nil
}

func (directories) look(path string, info os.FileInfo, _ int64) []backends.HealthIssue {
	if !info.IsDir() {
		return replaced(path, info)
	}
	return nil
}

// extend sets the quota, if the volume has one.
func (directories) extend(_ context.Context, v *volume, record *volumeRecord) error {
	return v.limit(record.SizeBytes)
}

func (directories) shrink(v *volume, length int64) error { return v.limit(length) }

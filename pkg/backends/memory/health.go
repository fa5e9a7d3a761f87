package memory

import (
	"context"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// Health reports whether the volume's files are missing, the only possible issue.
func (b *backend) Health(ctx context.Context, handle string) ([]backends.HealthIssue, error) {
	if err := b.lock(ctx); err != nil {
		return nil, err
	}
	defer b.mu.Unlock()
	v, err := b.volumes.get(handle)
	if err != nil {
		return nil, err
	}
	return b.issues(v), nil
}

// ListHealth enumerates the volumes whose files are missing.
func (b *backend) ListHealth(ctx context.Context, page backends.Page) ([]backends.VolumeHealth, string, error) {
	if err := b.lock(ctx); err != nil {
		return nil, "", err
	}
	defer b.mu.Unlock()
	rows, next, err := b.volumes.list(page, func(v *volume) bool { return len(b.issues(v)) > 0 })
	var unwell []backends.VolumeHealth
	for _, v := range rows {
		unwell = append(unwell, backends.VolumeHealth{Handle: v.handle, Issues: b.issues(v)})
	}
	return unwell, next, err
}

func (b *backend) issues(v *volume) []backends.HealthIssue {
	err := b.files.check(v.handle)
	if err == nil || v.removing {
		return nil
	}
	return []backends.HealthIssue{{Status: backends.DataLoss, Reason: "FilesMissing", Message: err.Error()}}
}

// Inspect reports whether the data directory is missing.
func (b *backend) Inspect(ctx context.Context) ([]backends.StorageIssue, error) {
	if err := b.lock(ctx); err != nil {
		return nil, err
	}
	defer b.mu.Unlock()
	if err := b.files.checkRoot(); err != nil {
		return []backends.StorageIssue{{Unreachable: true, Reason: "DirectoryMissing", Message: err.Error()}}, nil
	}
	return nil, nil
}

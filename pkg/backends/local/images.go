package local

import (
	"context"
	"fmt"
	"os"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/durable"
	"github.com/stowage-csi/stowage/pkg/filecopy"
)

// images is the storage for volumes that are files, which nodes attach as loop devices.
type images struct{}

func (images) fill(ctx context.Context, by copier, path string, record *volumeRecord, o *origin) error {
	if o.storage == nil {
		if err := makeImage(path); err != nil {
			return err
		}
		return growImage(ctx, path, record.SizeBytes, record.Allocation)
	}
	blocks := filecopy.Shared
	if record.Allocation == full {
		blocks = filecopy.Own
	}
	copies := []dataCopy{{from: o.data, volume: o.volume, to: path, size: o.size, blocks: blocks}}
	if err := by.copyImages(ctx, copies); err != nil {
		return err
	}
	return growImage(ctx, path, record.SizeBytes, record.Allocation)
}

func (images) capture(ctx context.Context, by copier, copies []dataCopy) error {
	if err := by.copyImages(ctx, copies); err != nil {
		return err
	}
	for _, c := range copies {
		if err := durable.SyncFile(c.to); err != nil {
			return err
		}
	}
	return nil
}

func (images) source(path string, info os.FileInfo, record *volumeRecord) (backends.Source, error) {
	if err := checkImage(info, record.size()); err != nil {
		return nil, err
	}
	return backends.Device{
		Path:         path,
		Image:        true,
		Identity:     backends.Identity{SizeBytes: record.size()},
		ReadAheadKiB: record.ReadAheadKiB,
	}, nil
}

func (images) look(path string, info os.FileInfo, size int64) []backends.HealthIssue {
	switch {
	case !info.Mode().IsRegular():
		return replaced(path, info)
	case info.Size() < size:
		return lost("ImageTruncated", fmt.Sprintf("the image has %d bytes and should have %d: restore it from a backup",
			info.Size(), size))
	}
	return nil
}

func (images) extend(ctx context.Context, v *volume, record *volumeRecord) error {
	info, err := os.Stat(v.data())
	if err != nil {
		return err
	}
	if info.Size() < record.ExpandingFromBytes {
		return backends.Errorf(backends.Unavailable, "the image has %d bytes and should have %d: its data is damaged",
			info.Size(), record.ExpandingFromBytes)
	}
	return growImage(ctx, v.data(), record.SizeBytes, record.Allocation)
}

// shrink leaves the length that the image had, whatever its record said: a node may use all of it.
func (images) shrink(v *volume, length int64) error {
	info, err := os.Stat(v.data())
	if err != nil || info.Size() <= length {
		return err
	}
	return os.Truncate(v.data(), length)
}

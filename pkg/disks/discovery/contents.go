package discovery

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/node/filesystem"
)

// Filesystems returns the names that the filesystems on an open device and on its partitions have as volumes once they
// are mounted.
func Filesystems(ctx context.Context, f *os.File, sizeBytes int64) ([]string, error) {
	b, err := blockOf(f)
	if err != nil {
		return nil, err
	}
	found, err := filesystem.Probe(ctx, f, sizeBytes)
	if err != nil {
		return nil, err
	}
	parts, err := b.onPartitions(ctx)
	return append(nameOn(found), parts...), err
}

// filesystemIdentity returns the identity of a filesystem, whatever device it is on.
func filesystemIdentity(fsType, uuid string) string { return fsType + "=" + uuid }

// nameOn returns the name of the volume that is a filesystem that was found on a device, if it can be one.
func nameOn(found filesystem.Found) []string {
	if found.UUID == "" {
		return nil
	}
	return []string{NameOf(filesystemIdentity(found.Type, found.UUID))}
}

// onPartitions returns the names of the volumes that are the filesystems on the partitions of a disk.
func (b *block) onPartitions(ctx context.Context) (names []string, err error) {
	if b.disk != nil {
		return nil, nil
	}
	partitions, err := b.relatives()
	if err != nil {
		return nil, err
	}
	for _, p := range partitions {
		found, err := p.probe(ctx)
		if err != nil {
			return nil, fmt.Errorf("look at the partition %s: %w", p.node(), err)
		}
		names = append(names, nameOn(found)...)
	}
	return names, nil
}

// probe reads what is on a device, whoever uses it.
func (b *block) probe(ctx context.Context) (filesystem.Found, error) {
	f, err := os.OpenFile(b.node(), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return filesystem.Found{}, err
	}
	defer func() { _ = f.Close() }() // open for reading only
	now, err := blockOf(f)
	if err != nil {
		return filesystem.Found{}, err
	}
	if now.number() != b.number() {
		return filesystem.Found{}, errors.New("its node is that of another device")
	}
	return filesystem.Probe(ctx, f, b.size)
}

package nfsd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/tests/vm/inside"
)

// Filesystem is a small separate filesystem to export: it can be filled, and have reflinks or quotas.
type Filesystem struct {
	Path  string // its mount point
	image string
}

// NewFilesystem creates a filesystem (ext4, xfs or btrfs) of the given size and mounts it at the path, which is created
// if it does not exist. The minimum size of an xfs is 300 MiB, that of a btrfs 109 MiB.
func NewFilesystem(ctx context.Context, path, fsType string, bytes int64) (*Filesystem, error) {
	if err := inside.Check(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(path, 0o777); err != nil {
		return nil, err
	}
	file, err := os.CreateTemp("", "nfsd-*.img")
	if err != nil {
		return nil, err
	}
	f := &Filesystem{Path: path, image: file.Name()}
	if err := errors.Join(file.Truncate(bytes), file.Close()); err != nil {
		return nil, errors.Join(err, os.Remove(f.image))
	}
	force := "-f"
	if fsType == "ext4" {
		force = "-F"
	}
	err = command(ctx, "mkfs."+fsType, "-q", force, f.image)
	if err == nil {
		err = command(ctx, "mount", "-t", fsType, "-o", "loop", f.image, path)
	}
	if err != nil {
		return nil, errors.Join(err, os.Remove(f.image))
	}
	return f, nil
}

// Fill takes all free space, including root's reserve. Empty releases it.
func (f *Filesystem) Fill() error {
	file, err := os.Create(f.filler())
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // nothing was written
	at := int64(0)
	for piece := int64(64 << 20); piece >= 512; {
		err := unix.Fallocate(int(file.Fd()), 0, at, piece)
		switch {
		case err == nil:
			at += piece
		case errors.Is(err, unix.ENOSPC):
			piece /= 2
		default:
			return fmt.Errorf("fill %s: %w", f.Path, err)
		}
	}
	return nil
}

// Empty removes the data of Fill.
func (f *Filesystem) Empty() error { return os.Remove(f.filler()) }

func (f *Filesystem) filler() string { return filepath.Join(f.Path, ".filler") }

// busyLimit is the limit for the server to release files of a filesystem that is no longer exported.
const busyLimit = 2 * time.Minute

// Close unmounts the filesystem and removes it. It must no longer be exported. Even then the server keeps used files
// open for half a minute: it is best to call Close after Server.Stop.
func (f *Filesystem) Close() error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	begun := time.Now()
	for {
		err := unix.Unmount(f.Path, 0)
		if err == nil {
			return os.Remove(f.image)
		}
		if !errors.Is(err, unix.EBUSY) || time.Since(begun) > busyLimit {
			return fmt.Errorf("unmount %s: %w", f.Path, err)
		}
		<-tick.C
	}
}

package leftovers

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/moby/sys/mountinfo"

	"github.com/stowage-csi/stowage/tests/e2e/cluster/layout"
)

// Removable fails if the folder holds anything except a cluster's data, or if something is mounted in it.
func Removable(l layout.Layout) error {
	entries, err := os.ReadDir(l.Data())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if len(entries) > 0 && !l.Exists() {
		return fmt.Errorf("%s holds no cluster's data, so it is not removed: name the folder of a cluster, or an empty one",
			l.Data())
	}
	return unmounted(l.Data())
}

// RemoveFolder removes the cluster's data, if it is Removable.
func RemoveFolder(ctx context.Context, l layout.Layout) error {
	if err := Removable(l); err != nil {
		return err
	}
	entries, err := os.ReadDir(l.Data())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	// The marker goes last: the rest after an interruption can be removed.
	for _, entry := range entries {
		if path := l.Path(entry.Name()); !l.IsMarker(path) {
			if err := remove(ctx, path); err != nil {
				return err
			}
		}
	}
	return os.RemoveAll(l.Data())
}

// remove retries for a while: files of a namespace that is just ending may still be in use.
func remove(ctx context.Context, path string) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := os.RemoveAll(path)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-tick.C:
		}
	}
}

func unmounted(folder string) error {
	mounts, err := mountinfo.GetMounts(mountinfo.PrefixFilter(folder))
	if err != nil {
		return err
	}
	if len(mounts) > 0 {
		return fmt.Errorf("%s is mounted below %s: unmount it first", mounts[0].Mountpoint, folder)
	}
	return nil
}

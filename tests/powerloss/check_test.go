package powerloss

import (
	"context"
	"errors"
	"fmt"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/local"
)

// checkAccounts checks that the free capacity and the existing volumes and snapshots add up to the total.
func (b *backend) checkAccounts(ctx context.Context) error {
	volumes, _, err := b.controller.List(ctx, backends.Page{})
	if err != nil {
		return err
	}
	snapshots, _, err := b.controller.ListSnapshots(ctx, "", backends.Page{})
	if err != nil {
		return err
	}
	left := map[string]int64{imagePool: imageCapacity, directoryPool: directoryCapacity}
	for _, v := range volumes {
		left[poolOf(v)] -= v.CapacityBytes
	}
	for _, s := range snapshots {
		if path, err := b.snapshotData(s); err != nil {
			return err
		} else if within(path, b.pool(imagePool)) { // The copy of a directory is not counted.
			left[imagePool] -= s.SizeBytes
		}
	}
	return b.compareAccounts(ctx, left)
}

func (b *backend) compareAccounts(ctx context.Context, left map[string]int64) error {
	var errs []error
	for pool, want := range left {
		have, err := b.controller.Capacity(ctx, backends.CapacityQuery{Parameters: &local.Parameters{Pool: pool}})
		if err == nil && have.AvailableBytes != want {
			err = fmt.Errorf("pool %s has %d bytes available, want %d", pool, have.AvailableBytes, want)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// poolOf returns the pool of a volume: only an image can be a block device.
func poolOf(v backends.Volume) string {
	for _, t := range v.Access.Types {
		if t == backends.Block {
			return imagePool
		}
	}
	return directoryPool
}

// removeAll deletes everything, and checks that nothing is left.
func (b *backend) removeAll(ctx context.Context, groups []string) error {
	errs := []error{b.removeGroups(ctx, groups), b.removeSnapshots(ctx), b.removeVolumes(ctx)}
	volumes, _, err := b.controller.List(ctx, backends.Page{})
	errs = append(errs, err)
	snapshots, _, err := b.controller.ListSnapshots(ctx, "", backends.Page{})
	errs = append(errs, err)
	if len(volumes)+len(snapshots) > 0 {
		errs = append(errs, fmt.Errorf("after deleting all there are %+v and %+v", volumes, snapshots))
	}
	return errors.Join(errs...)
}

func (b *backend) removeGroups(ctx context.Context, names []string) error {
	var errs []error
	for _, name := range names {
		g, err := b.controller.FindGroup(ctx, name)
		if backends.Is(err, backends.NotFound) {
			continue
		}
		if err == nil {
			err = b.controller.DeleteGroup(ctx, g.Handle)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (b *backend) removeSnapshots(ctx context.Context) error {
	snapshots, _, err := b.controller.ListSnapshots(ctx, "", backends.Page{})
	errs := []error{err}
	for _, s := range snapshots {
		errs = append(errs, b.controller.DeleteSnapshot(ctx, s.Handle))
	}
	return errors.Join(errs...)
}

func (b *backend) removeVolumes(ctx context.Context) error {
	volumes, _, err := b.controller.List(ctx, backends.Page{})
	errs := []error{err}
	for _, v := range volumes {
		errs = append(errs, b.controller.Delete(ctx, v.Handle))
	}
	return errors.Join(errs...)
}

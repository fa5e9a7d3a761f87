package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stowage-csi/stowage/tests/orchestrator"
)

// grow grows the ext4 volume, or an xfs volume if the kernel does not let this process grow ext4.
func (d *demo) grow(ctx context.Context, s *step) (err error) {
	d.grown = d.volume
	if orchestrator.GrowsExt4Online() {
		s.ok("the ext4 volume")
	} else {
		s.ok("an xfs volume, since growing ext4 online takes CAP_SYS_RESOURCE, which this machine withholds")
		if d.grown, err = d.provision(ctx, claim("demo-xfs", "xfs")); err != nil {
			return err
		}
	}
	held, err := os.OpenFile(filepath.Join(d.grown.Target(), "held-open"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer held.Close() //nolint:errcheck // what matters is checked by Sync
	path := filepath.Join(d.grown.Target(), "while-growing")
	sum, err := workload(ctx, s, path, 16, group)
	if err != nil {
		return err
	}
	before, after, err := d.growTo(ctx, 2*gib)
	if err != nil {
		return err
	}
	if after < 2*gib*9/10 || after > 2*gib {
		return fmt.Errorf("the filesystem has %d MiB, and had %d MiB: want about 2048", after/mib, before/mib)
	}
	s.ok("%d -> %d MiB, a file held open and writable throughout", before/mib, after/mib)
	if _, err := held.Write([]byte("still here\n")); err != nil {
		return err
	}
	s.ok("data intact")
	return errors.Join(held.Sync(), sameData(path, sum), d.allData())
}

// growTo grows the volume and returns the filesystem's size in bytes before and after.
func (d *demo) growTo(ctx context.Context, size int64) (before, after int64, err error) {
	if before, err = sizeAt(d.grown.Target()); err != nil {
		return 0, 0, err
	}
	if err = d.client.Expand(ctx, d.grown, size, true); err != nil {
		return 0, 0, err
	}
	after, err = sizeAt(d.grown.Target())
	return before, after, err
}

func sizeAt(path string) (int64, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return 0, err
	}
	return int64(fs.Blocks) * fs.Bsize, nil
}

func (d *demo) refuse(ctx context.Context, s *step) error {
	before, err := d.client.VolumeIDs(ctx)
	if err != nil {
		return err
	}
	wrong := claim("demo-typo", "ext4")
	wrong.Parameters = map[string]string{"poool": "image"}
	_, err = d.client.Provision(ctx, wrong)
	if status.Code(err) != codes.InvalidArgument {
		return fmt.Errorf("the class parameter poool must be refused with InvalidArgument: %w", orNil(err))
	}
	after, err2 := d.client.VolumeIDs(ctx)
	if err2 != nil {
		return err2
	}
	if !slices.Equal(before, after) {
		return fmt.Errorf("something was provisioned all the same: %v, then %v", before, after)
	}
	s.ok("{poool: image} is InvalidArgument: “%s”", status.Convert(errors.Unwrap(err)).Message())
	s.ok("nothing was provisioned")
	return nil
}

func (d *demo) volumes() []*orchestrator.Volume {
	list := []*orchestrator.Volume{d.volume, d.restored}
	if d.grown != d.volume {
		list = append(list, d.grown)
	}
	return list
}

func (d *demo) tearDown(ctx context.Context, s *step) error {
	for _, v := range d.volumes() {
		s.progress("volume %s", v.ID)
		if err := errors.Join(d.client.Unpublish(ctx, v), d.client.Unstage(ctx, v)); err != nil {
			return err
		}
	}
	if err := d.client.Forget(ctx, d.snapshot); err != nil {
		return err
	}
	for _, v := range d.volumes() {
		if err := d.client.Delete(ctx, v); err != nil {
			return err
		}
	}
	volumes, err := d.client.VolumeIDs(ctx)
	if err != nil {
		return err
	}
	snapshots, err := d.client.SnapshotIDs(ctx)
	if err != nil {
		return err
	}
	if len(volumes)+len(snapshots) > 0 {
		return fmt.Errorf("the driver still lists the volumes %v and snapshots %v", volumes, snapshots)
	}
	s.ok("no target, no staging directory, no volume, no snapshot")
	return nil
}

func (d *demo) stop(ctx context.Context, s *step) error {
	if _, err := d.client.Probe(ctx, &csi.ProbeRequest{}); err != nil {
		return err
	}
	if err := d.driver.Stop(ctx); err != nil {
		return err
	}
	if _, err := os.Lstat(d.workspace.Socket()); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the socket is still there (%w)", orNil(err))
	}
	s.ok("SIGTERM: exit status 0, the socket is removed")
	return nil
}

func (d *demo) nothingLeft(_ context.Context, s *step) error {
	leaks, err := orchestrator.Leaks(d.workspace.Data(), d.workspace.Mounts())
	if err != nil {
		return err
	}
	if len(leaks) > 0 {
		return fmt.Errorf("%d things are left: %q", len(leaks), leaks)
	}
	s.ok("no mount, no loop device, no file of a volume, no record of the node")
	return nil
}

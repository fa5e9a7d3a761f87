package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/stowage-csi/stowage/tests/orchestrator"
)

func (d *demo) takeSnapshot(ctx context.Context, s *step) (err error) {
	if d.snapshot, err = d.client.Snapshot(ctx, d.volume, "demo-snapshot", nil); err != nil {
		return err
	}
	s.ok("snapshot %s is ready, %d MiB", d.snapshot.ID, d.snapshot.Bytes/mib)
	if err := sameData(filepath.Join(d.volume.Target(), fileBefore), d.before); err != nil {
		return err
	}
	s.ok("the volume reads as before")
	return nil
}

func (d *demo) restore(ctx context.Context, s *step) (err error) {
	if d.after, err = workload(ctx, s, filepath.Join(d.volume.Target(), fileAfter), 16, group); err != nil {
		return err
	}
	s.progress("restoring")
	from := claim("demo-restored", "ext4")
	from.Snapshot = d.snapshot.ID
	if d.restored, err = d.provision(ctx, from); err != nil {
		return err
	}
	if err := sameData(filepath.Join(d.restored.Target(), fileBefore), d.before); err != nil {
		return err
	}
	s.ok("volume %s has the 64 MiB of the snapshot, sha256 %s…", d.restored.ID, d.before[:12])
	if _, err := os.Lstat(filepath.Join(d.restored.Target(), fileAfter)); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("it has also what was written after the snapshot (%w)", orNil(err))
	}
	s.ok("and nothing of the 16 MiB written since")
	return nil
}

func (d *demo) kill(_ context.Context, s *step) error {
	if err := d.driver.Kill(true); err != nil {
		return err
	}
	if err := d.allData(); err != nil {
		return err
	}
	s.ok("the driver is gone, both volumes still read right")
	return nil
}

// allData reads and compares all data.
func (d *demo) allData() error {
	return errors.Join(
		sameData(filepath.Join(d.volume.Target(), fileBefore), d.before),
		sameData(filepath.Join(d.volume.Target(), fileAfter), d.after),
		sameData(filepath.Join(d.restored.Target(), fileBefore), d.before),
	)
}

func (d *demo) replay(ctx context.Context, s *step) error {
	took, err := d.driver.Start(ctx)
	if err != nil {
		return err
	}
	s.ok("answers after %d ms", took.Milliseconds())
	if err := d.foundAgain(ctx); err != nil {
		return err
	}
	s.ok("2 volumes and 1 snapshot found again")
	for _, v := range []*orchestrator.Volume{d.volume, d.restored} {
		again, err := d.provision(ctx, v.Claim)
		if err != nil {
			return err
		}
		if again.ID != v.ID {
			return fmt.Errorf("CreateVolume again gave %s, and %s before", again.ID, v.ID)
		}
	}
	again, err := d.client.Snapshot(ctx, d.volume, d.snapshot.Name, nil)
	if err != nil {
		return err
	}
	if again.ID != d.snapshot.ID {
		return fmt.Errorf("CreateSnapshot again gave %s, and %s before", again.ID, d.snapshot.ID)
	}
	s.ok("create, stage, publish and snapshot again: the same IDs")
	return d.notStacked(s)
}

func (d *demo) foundAgain(ctx context.Context) error {
	volumes, err := d.client.VolumeIDs(ctx)
	if err != nil {
		return err
	}
	want := []string{d.volume.ID, d.restored.ID}
	slices.Sort(want)
	if !slices.Equal(volumes, want) {
		return fmt.Errorf("the volumes are %v, want %v", volumes, want)
	}
	snapshots, err := d.client.SnapshotIDs(ctx)
	if err != nil {
		return err
	}
	if !slices.Equal(snapshots, []string{d.snapshot.ID}) {
		return fmt.Errorf("the snapshots are %v, want %s", snapshots, d.snapshot.ID)
	}
	return nil
}

// notStacked checks that a repeated call added no mount over an existing one.
func (d *demo) notStacked(s *step) error {
	for _, path := range []string{d.volume.Staging(), d.volume.Target(), d.restored.Staging(), d.restored.Target()} {
		n, err := orchestrator.MountsAt(path)
		if err != nil {
			return err
		}
		if n != 1 {
			return fmt.Errorf("%d mounts at %s, want 1", n, path)
		}
	}
	s.ok("one mount at each place")
	return d.allData()
}

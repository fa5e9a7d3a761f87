package local

import (
	"context"
	"os"
	"path/filepath"
	"strconv"

	"github.com/stowage-csi/stowage/pkg/durable"
)

// produce creates an item in staging/ and moves it to its final place. The ledger counts needed bytes meanwhile, and
// kept bytes afterwards. A failure leaves only trash, or an item that may be in its final place: see giveUp.
func (s *stock) produce(ctx context.Context, p *pool, handle string, needed, kept int64,
	build func(*draft) (path string, err error)) (path string, err error) {
	if err := p.take(ctx, needed); err != nil {
		return "", err
	}
	d, err := p.newDraft(handle)
	if err != nil {
		p.ledger.give(needed)
		return "", err
	}
	path, err = build(d)
	if err != nil {
		s.giveUp(d, needed, err)
		return "", err
	}
	p.ledger.give(needed - kept)
	return path, nil
}

// makeVolume creates a volume with the contents of its origin. Kinds: Exhausted; those of the steps.
func (s *stock) makeVolume(ctx context.Context, by copier, p *pool, record *volumeRecord, o *origin) (*volume, error) {
	needed, err := o.needs(ctx, p, record.SizeBytes)
	if err != nil {
		return nil, err
	}
	needed = max(needed, record.SizeBytes) // It may be written full.
	path, err := s.produce(ctx, p, record.Handle, needed, record.SizeBytes, func(d *draft) (string, error) {
		data := filepath.Join(d.path, p.storage.data)
		err := d.fillBounded(record, func() error { return p.storage.fill(ctx, by, data, record, o) })
		if err != nil {
			return "", err
		}
		return d.publish(ctx, volumesFolder, record)
	})
	if err != nil {
		return nil, err
	}
	return newVolume(p, path, record), nil
}

// makeSnapshot creates a snapshot of its origin, which is a volume. Kinds: as makeVolume.
func (s *stock) makeSnapshot(ctx context.Context, by copier, record *snapshotRecord, o *origin) (*snapshot, error) {
	p := o.pool
	needed, err := o.needs(ctx, p, record.SizeBytes)
	if err != nil {
		return nil, err
	}
	kept := p.storage.cost(record.SizeBytes)
	path, err := s.produce(ctx, p, record.Handle, needed, kept, func(d *draft) (string, error) {
		data := filepath.Join(d.path, p.storage.data)
		copies := []dataCopy{{from: o.data, volume: o.volume, to: data, size: record.SizeBytes}}
		if err := p.storage.capture(ctx, by, copies); err != nil {
			return "", err
		}
		return d.publish(ctx, snapshotsFolder, record)
	})
	if err != nil {
		return nil, err
	}
	return newSnapshot(p, path, record, ""), nil
}

// makeGroup creates snapshots of volumes of one pool at one instant. Kinds: as makeVolume.
func (s *stock) makeGroup(ctx context.Context, by copier, record *groupRecord, volumes []*volume) (*group, error) {
	p := volumes[0].pool
	path, err := s.produce(ctx, p, record.Handle, record.cost(), record.cost(), func(d *draft) (string, error) {
		if err := d.captureAll(ctx, by, record, volumes); err != nil {
			return "", err
		}
		return d.publish(ctx, groupsFolder, record)
	})
	if err != nil {
		return nil, err
	}
	return newGroup(p, path, record), nil
}

// captureAll creates the data of a group's members, durably.
func (d *draft) captureAll(ctx context.Context, by copier, record *groupRecord, volumes []*volume) error {
	var copies []dataCopy
	for i, v := range volumes {
		dir := filepath.Join(d.path, strconv.Itoa(i))
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
		to := filepath.Join(dir, d.pool.storage.data)
		copies = append(copies, dataCopy{from: v.data(), volume: v, to: to, size: record.Members[i].SizeBytes})
	}
	if err := d.pool.storage.capture(ctx, by, copies); err != nil {
		return err
	}
	for _, c := range copies {
		if err := durable.SyncDir(filepath.Dir(c.to)); err != nil {
			return err
		}
	}
	return nil
}

package local

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/durable"
)

// report counts what start-up found in a pool and did to it.
type report struct {
	volumes, snapshots, groups                int
	trash, drafts, quarantined, grown, thawed int
}

// load reads all that a pool has, repairs what a crash left behind, and reports it. Kinds: Unavailable for a
// pool that a newer version has written to: everything in it is left as it is.
func (e *engine) load(ctx context.Context, p *pool) error {
	var r report
	for _, step := range []func(context.Context, *pool, *report) error{
		e.loadVolumes, e.loadSnapshots, e.loadGroups, e.repairVolumes, e.sweep,
	} {
		if err := step(ctx, p, &r); err != nil {
			return backends.Errorf(classify(err), "pool %q in %s cannot be used: %w", p.name, p.path, err)
		}
	}
	p.log.Info("pool is open", "path", p.path, "type", string(p.kind), "reflink", p.reflink,
		"volumes", r.volumes, "snapshots", r.snapshots, "groups", r.groups, "trash", r.trash, "drafts", r.drafts,
		"quarantined", r.quarantined, "grown", r.grown, "thawed", r.thawed)
	return nil
}

// reader takes in an entry of a folder: its name, its path, and what its record holds.
type reader func(handle, dir string, data []byte) error

// loadFolder reads the records of one folder, and puts what cannot be understood into quarantine.
func (e *engine) loadFolder(ctx context.Context, p *pool, folder string, r *report, read reader) error {
	entries, err := os.ReadDir(p.folder(folder))
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		dir := filepath.Join(p.folder(folder), entry.Name())
		err := readEntry(entry, dir, read)
		if errors.Is(err, errNewer) {
			return backends.Errorf(backends.Unavailable, "%s: %w", dir, err)
		}
		if err != nil {
			r.quarantined++
			p.quarantine(folder, entry.Name(), err)
		}
	}
	return nil
}

func readEntry(entry os.DirEntry, dir string, read reader) error {
	if !entry.IsDir() {
		return errors.New("it is not a directory")
	}
	data, err := os.ReadFile(filepath.Join(dir, recordFile))
	if err != nil {
		return err
	}
	return read(entry.Name(), dir, data)
}

// quarantine sets aside what cannot be understood. Nothing is lost by that, and the name is free again.
func (p *pool) quarantine(folder, name string, why error) {
	target := filepath.Join(p.folder(quarantineFolder), unique(folder+"-"+name))
	err := p.move(filepath.Join(p.folder(folder), name), target, p.folder(quarantineFolder), p.folder(folder))
	p.log.Error("something cannot be understood and was set aside: look at it, and remove it or put it back",
		"entry", folder+"/"+name, "moved_to", target, "why", why, "error", err)
}

func (e *engine) loadVolumes(ctx context.Context, p *pool, r *report) error {
	return e.loadFolder(ctx, p, volumesFolder, r, func(handle, dir string, data []byte) error {
		record := new(volumeRecord)
		if err := decode(data, record); err != nil {
			return err
		}
		if err := record.check(handle, p.kind); err != nil {
			return err
		}
		if err := e.volumes.reserve(handle); err != nil {
			return err // Another pool has a volume of that name.
		}
		p.ledger.add(record.SizeBytes)
		e.volumes.settle(handle, newVolume(p, dir, record))
		r.volumes++
		return nil
	})
}

func (e *engine) loadSnapshots(ctx context.Context, p *pool, r *report) error {
	return e.loadFolder(ctx, p, snapshotsFolder, r, func(handle, dir string, data []byte) error {
		record := new(snapshotRecord)
		if err := decode(data, record); err != nil {
			return err
		}
		if err := record.check(handle, p.kind); err != nil {
			return err
		}
		if err := e.snapshots.reserve(handle); err != nil {
			return err
		}
		p.ledger.add(p.kind.cost(record.SizeBytes))
		e.snapshots.settle(handle, newSnapshot(p, dir, record, ""))
		r.snapshots++
		return nil
	})
}

func (e *engine) loadGroups(ctx context.Context, p *pool, r *report) error {
	return e.loadFolder(ctx, p, groupsFolder, r, func(handle, dir string, data []byte) error {
		record := new(groupRecord)
		if err := decode(data, record); err != nil {
			return err
		}
		if err := record.check(handle, p.kind); err != nil {
			return err
		}
		if err := e.groups.reserve(handle); err != nil {
			return err
		}
		p.ledger.add(record.cost())
		e.shelve(newGroup(p, dir, record))
		r.groups++
		return nil
	})
}

// sweep takes up the trash of before, and makes trash of what was being made.
func (e *engine) sweep(_ context.Context, p *pool, r *report) error {
	trash, err := os.ReadDir(p.folder(trashFolder))
	if err != nil {
		return err
	}
	drafts, err := os.ReadDir(p.folder(stagingFolder))
	if err != nil {
		return err
	}
	for _, entry := range trash {
		path := filepath.Join(p.folder(trashFolder), entry.Name())
		size := p.costOfTrash(path)
		p.ledger.add(size)
		p.janitor.add(waste{path: path, size: size})
	}
	for _, entry := range drafts {
		if err := p.discard(filepath.Join(p.folder(stagingFolder), entry.Name()), 0); err != nil {
			return err
		}
	}
	r.trash, r.drafts = len(trash), len(drafts)
	return durable.SyncDir(p.folder(stagingFolder))
}

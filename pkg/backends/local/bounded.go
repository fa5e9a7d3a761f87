package local

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/local/quota"
)

// A directory volume has no size of its own. With project quotas, each volume has its own project, with its size as the
// limit. Only the record says which one, because users of a volume may change the project of its files.

// findQuotas finds out whether the pool's filesystem bounds directories.
func (p *pool) findQuotas() error {
	if p.storage.bounded {
		return nil
	}
	dir, err := os.Open(p.path)
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }() // It was only read.
	p.quotas = quota.Enforced(dir)
	return nil
}

// fillBounded fills a draft. From the first byte on, its contents are in their own project. The draft's own folder
// leaves the project after that, because no file could be moved into it otherwise. The limit is set last, so that
// contents that are too large are refused with a clear error, and not in the middle of the copy. A crash before that
// leaves a draft, which the next start removes.
func (d *draft) fillBounded(record *volumeRecord, fill func() error) error {
	if !d.pool.quotas {
		return fill()
	}
	folder, err := os.Open(d.path)
	if err != nil {
		return err
	}
	defer func() { _ = folder.Close() }() // No data was written to it.
	project, err := quota.Take(folder)
	if err != nil {
		return err
	}
	if err := errors.Join(fill(), quota.Leave(folder)); err != nil {
		return err
	}
	used, _, err := quota.Usage(folder, project)
	if err != nil {
		return err
	}
	if used > record.SizeBytes+slack(record.SizeBytes) {
		return backends.Errorf(backends.OutOfRange,
			"the contents of its source take %d bytes, and it is to have %d, which this pool enforces: ask for more",
			used, record.SizeBytes)
	}
	record.Project = project
	return quota.Limit(folder, project, max(record.SizeBytes, used))
}

// slack is how much more than its source a copy may take, because its blocks are elsewhere, and how much an empty
// directory takes.
func slack(size int64) int64 { return 1<<20 + size/16 }

// limit sets the volume's quota to size bytes, or to its current usage if that is larger. If quotas are off, the next
// start with quotas sets it.
func (v *volume) limit(size int64) error {
	project := v.record.Load().Project
	if project == 0 || !v.pool.quotas {
		return nil
	}
	return v.inProject(func(dir *os.File) error {
		used, _, err := quota.Usage(dir, project)
		if err != nil {
			return err
		}
		return quota.Limit(dir, project, max(size, used))
	})
}

// unlimit releases the project of a deleted volume.
func (p *pool) unlimit(project uint32) {
	if project == 0 {
		return
	}
	dir, err := os.Open(p.path)
	if err == nil {
		defer func() { _ = dir.Close() }() // It was only read.
		err = quota.Limit(dir, project, 0)
	}
	if err != nil {
		p.log.Debug("the quota of a deleted volume stays: nothing uses it", "project", project, "error", err)
	}
}

func (v *volume) inProject(work func(dir *os.File) error) error {
	dir, err := os.Open(v.dir)
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }() // It was only read.
	return work(dir)
}

// checkBounds makes sure at start-up that each volume with a project is bounded, and notes the volumes that are not.
func (p *pool) checkBounds(ctx context.Context, volumes []*volume) {
	var unbounded []string
	var why error
	for _, v := range volumes {
		if v.record.Load().Project == 0 || ctx.Err() != nil {
			continue
		}
		if err := v.checkBound(); err != nil {
			unbounded, why = append(unbounded, v.record.Load().Handle), err
		}
	}
	if len(unbounded) == 0 {
		p.unbounded.Store(nil)
		return
	}
	message := fmt.Sprintf("%d volumes of pool %q may be filled beyond their sizes, one of them is %s: %v", len(unbounded),
		p.name, unbounded[0], why)
	p.log.Warn("the sizes of volumes are not enforced any more", "why", message)
	p.unbounded.Store(&message)
}

// checkBound checks the project of the volume's root, and sets the limit again unless it is at least the volume's size.
func (v *volume) checkBound() error {
	r := v.record.Load()
	if !v.pool.quotas {
		return errors.New("its filesystem is not mounted with project quotas: mount it with the option prjquota")
	}
	root, err := os.Open(v.data())
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // It was only read.
	if project, err := quota.Project(root); err != nil || project != r.Project {
		return errors.Join(fmt.Errorf("its directory has the project %d and should have %d", project, r.Project), err)
	}
	if bounded, err := quota.Bounded(root, r.Project, r.SizeBytes); err != nil || bounded {
		return err
	}
	return v.limit(r.SizeBytes)
}

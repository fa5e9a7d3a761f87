package local

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/durable"
	"github.com/stowage-csi/stowage/pkg/failure"
)

// report counts what start-up found in a pool and did to it.
type report struct {
	trash, drafts, quarantined, grown, thawed int
}

// load reads all of a pool, repairs what a crash left behind, and logs it. No call sees the results yet.
func (e *engine) load(ctx context.Context, p *pool) (*contents, error) {
	var r report
	c := &contents{away: map[string]*away{}}
	for _, folder := range entryFolders() {
		if err := p.readFolder(ctx, folder, c, &r); err != nil {
			return nil, err
		}
	}
	p.keepMoves()
	if err := e.repairVolumes(ctx, c, &r); err != nil {
		return nil, err
	}
	if err := p.sweep(&r); err != nil {
		return nil, err
	}
	p.checkBounds(ctx, c.volumes)
	for name, a := range c.away {
		p.log.Error("something cannot be used now: it stays where it is, and is tried again", "entry", a.folder+"/"+name,
			"why", failure.OneLine(a.why))
	}
	p.log.Info("pool is open", "path", p.path, "type", string(p.storage.name), "reflink", p.reflink.Load(),
		"quotas", p.quotas, "volumes", len(c.volumes), "snapshots", len(c.snapshots), "groups", len(c.groups),
		"unusable", len(c.away), "trash", r.trash, "drafts", r.drafts, "quarantined", r.quarantined, "grown", r.grown,
		"thawed", r.thawed)
	return c, nil
}

// entryFolders returns the folders for volumes, snapshots and groups.
func entryFolders() []string { return []string{volumesFolder, snapshotsFolder, groupsFolder} }

// keepMoves makes durable the entries that were found in their places. A killed process may have moved them there
// unacknowledged. A loss of power must not undo that once it is acknowledged.
func (p *pool) keepMoves() {
	for _, folder := range entryFolders() {
		if err := durable.SyncDir(p.folder(folder)); err != nil {
			p.log.Warn("what was made last may be gone after a loss of power", "error", err)
		}
	}
}

// readFolder reads the entries of one folder.
func (p *pool) readFolder(ctx context.Context, folder string, c *contents, r *report) error {
	entries, err := os.ReadDir(p.folder(folder))
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		p.readInto(c, folder, entry.Name(), r)
	}
	return nil
}

// readInto adds an entry to contents and sets foreign entries aside. An entry that cannot be read now keeps its
// place and its name: that a disk fails, or that the process has no descriptor left, makes no volume less there.
func (p *pool) readInto(c *contents, folder, name string, r *report) {
	found, err := p.read(folder, name)
	if _, ok := errors.AsType[notOurs](err); ok {
		if err = p.quarantine(folder, name, err); err == nil {
			r.quarantined++
			return
		}
	}
	if err != nil {
		c.away[name] = p.unreadable(folder, err)
		return
	}
	c.volumes = append(c.volumes, found.volumes...)
	c.snapshots = append(c.snapshots, found.snapshots...)
	c.groups = append(c.groups, found.groups...)
}

// unreadable describes an entry that cannot be used now.
func (p *pool) unreadable(folder string, why error) *away {
	a := &away{pool: p.name, folder: folder, reason: recordUnreadable, why: why}
	switch {
	case errors.Is(why, errNewer):
		a.reason = recordNewer
	case errors.Is(why, os.ErrNotExist):
		a.why = backends.Errorf(backends.Unusable,
			"its record is missing, and its data may be there: restore the record, or move the folder out of the pool: %w", why)
	}
	return a
}

// quarantine sets aside an entry that cannot be understood. Nothing is lost, and the name is free again. An empty
// folder, which an interrupted deletion in place leaves behind, is removed.
func (p *pool) quarantine(folder, name string, why error) error {
	if err := unix.Rmdir(p.entry(folder, name)); err == nil {
		return durable.SyncDir(p.folder(folder))
	}
	target := filepath.Join(p.folder(quarantineFolder), unique(folder+"-"+name))
	err := p.move(filepath.Join(p.folder(folder), name), target, p.folder(quarantineFolder), p.folder(folder))
	if err != nil {
		return errors.Join(why, err)
	}
	p.log.Error("something cannot be understood and was set aside: look at it, and remove it or put it back",
		"entry", folder+"/"+name, "moved_to", target, "why", why)
	return nil
}

// sweep queues old trash for removal, and makes trash of old drafts. A draft counts with what it holds on disk until it
// is gone.
func (p *pool) sweep(r *report) error {
	trash, err := os.ReadDir(p.folder(trashFolder))
	if err != nil {
		return err
	}
	drafts, err := os.ReadDir(p.folder(stagingFolder))
	if err != nil {
		return err
	}
	for _, entry := range trash {
		p.discarded(p.entry(trashFolder, entry.Name()))
	}
	p.drafts = nil
	for _, entry := range drafts {
		path := p.entry(stagingFolder, entry.Name())
		size := p.heldBy(path)
		p.ledger.add(size)
		p.drafts = append(p.drafts, waste{path: path, size: size})
	}
	r.trash, r.drafts = len(trash), len(drafts)
	p.discardDrafts()
	return nil
}

// discardDrafts makes trash of the old drafts, as far as they can be moved now.
func (p *pool) discardDrafts() {
	var left []waste
	var why error
	for _, draft := range p.drafts {
		err := p.discard(draft.path, draft.size)
		switch {
		case errors.Is(err, os.ErrNotExist):
			p.ledger.give(draft.size)
		case err != nil:
			left, why = append(left, draft), err
		}
	}
	if len(left) > 0 && len(left) == len(p.drafts) {
		p.drafts = left
		p.log.Warn("drafts could not be removed: they are tried again", "drafts", len(left), "error", why)
		return
	}
	p.drafts = left
	if err := durable.SyncDir(p.folder(stagingFolder)); err != nil {
		p.log.Warn("the removal of drafts is not durable yet: the next start removes them again", "error", err)
	}
}

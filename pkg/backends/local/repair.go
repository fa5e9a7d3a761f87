package local

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/local/freeze"
	"github.com/stowage-csi/stowage/pkg/deadline"
)

// repairVolumes completes the interrupted steps of each volume that was found, and reads its notes. A volume cannot be
// used if it is unknown whether it is in use.
func (e *engine) repairVolumes(ctx context.Context, c *contents, r *report) error {
	found := c.volumes
	c.volumes = nil
	for _, v := range found {
		if err := ctx.Err(); err != nil {
			return err
		}
		handle, p := v.record.Load().Handle, v.pool
		inUse, err := e.readInUse(v)
		if err != nil {
			c.away[handle] = p.unreadable(volumesFolder, err)
			continue
		}
		v.inUse.Store(inUse)
		c.volumes = append(c.volumes, v)
		if err := e.readFrozen(ctx, v, r); err != nil {
			p.log.Warn("a volume may be frozen still", "volume", handle, "error", err)
		}
		if v.record.Load().ExpandingFromBytes == 0 {
			continue
		}
		if err := v.finishGrowing(ctx); err != nil {
			p.log.Warn("a volume could not be grown as was begun: it has its old size, and can be expanded again",
				"volume", handle, "error", err)
			continue
		}
		r.grown++
	}
	return nil
}

// readInUse reports whether the volume is in use, and removes the notes of earlier boots.
func (e *engine) readInUse(v *volume) (bool, error) {
	inFolder, inData, err := e.isInUse(v)
	if err != nil {
		return false, err
	}
	released, err := e.isReleased(v)
	if err != nil {
		return false, err
	}
	if inData || inFolder && !released {
		return true, nil
	}
	if err := errors.Join(e.forgetUsed(v.record.Load().Handle), v.clear(inUseNote)); err != nil {
		v.pool.log.Warn("a note that a volume was in use could not be removed: it is not believed", "error", err)
	}
	return false, nil
}

// readFrozen thaws a filesystem that was frozen in this boot, and removes the note. Failures are retried: a workload
// stalls while its filesystem is frozen.
func (e *engine) readFrozen(ctx context.Context, v *volume, r *report) error {
	frozen, err := frozenNote.holds(v.dir, e.boot)
	if err == nil && frozen {
		err = e.thaw(ctx, v, r)
	}
	if err == nil {
		err = v.clear(frozenNote)
	}
	v.frozen.Store(err != nil)
	return err
}

// thawFirst retries, before volumes are frozen, to thaw what could not be thawed before. Otherwise a new freeze would
// take the old note for its own and remove it. The caller owns the volumes. Kinds: InUse.
func (e *engine) thawFirst(ctx context.Context, volumes []*volume) error {
	for _, v := range volumes {
		if !v.frozen.Load() {
			continue
		}
		if err := e.readFrozen(ctx, v, &report{}); err != nil {
			return backends.Errorf(backends.InUse, "the filesystem on volume %s may be frozen still, by a copy that was cut "+
				"short, and cannot be copied before it is thawed, which is tried again: %w", v.record.Load().Handle, err)
		}
	}
	return nil
}

// thawAgain retries to thaw filesystems. A copy owns its volume and thaws it itself.
func (e *engine) thawAgain(p *pool) {
	for _, entry := range e.stock.volumes.all() {
		v := entry.item
		if v == nil || v.pool != p || !v.frozen.Load() {
			continue
		}
		if release, ok := v.ownNow(); ok {
			if err := e.readFrozen(e.life, v, &report{}); err != nil {
				p.log.Debug("a volume may be frozen still", "volume", entry.handle, "error", err)
			}
			release()
		}
	}
	e.thawAway(p)
}

// thawAway thaws volumes without an item on the shelf: their record is unreadable, or their name is there twice.
func (e *engine) thawAway(p *pool) {
	for name := range e.stock.volumes.awayFrom(p.name) {
		if v, ok := e.stock.volumes.here(name); ok && v.pool == p {
			continue
		}
		unread := newVolume(p, p.entry(volumesFolder, name), &volumeRecord{Handle: name})
		if err := e.readFrozen(e.life, unread, &report{}); err != nil {
			p.log.Debug("a volume that cannot be used may be frozen still", "entry", name, "error", err)
		}
	}
}

// thaw thaws the filesystem on an image that a killed process froze. It gives up on one that does not answer: the pool
// is served, and thawing is retried. No attempt begins before an abandoned one has returned, so that none takes effect
// late, during a copy. Kinds: Unavailable.
func (e *engine) thaw(ctx context.Context, v *volume, r *report) error {
	ctx, cancel := context.WithTimeout(e.waiting.calls.With(ctx), e.waiting.limits.Look)
	defer cancel()
	call := deadline.Call{Name: "thawing what is on the volume in " + v.dir}
	thawed, err := deadline.Do(ctx, call, func(ctx context.Context) (bool, error) {
		use, err := freeze.Find(ctx, v.data())
		if err != nil {
			return false, err
		}
		return use.Thaw(ctx)
	}, nil)
	if thawed {
		r.thawed++
		v.pool.log.Warn("a filesystem that was left frozen was thawed", "volume", v.record.Load().Handle)
	}
	return err
}

// costOfTrash is how many bytes an item in the trash took from the ledger, as far as its record says.
func (p *pool) costOfTrash(path string) int64 {
	data, err := os.ReadFile(filepath.Join(path, recordFile))
	if err != nil {
		return 0 // A draft, or partly removed.
	}
	var record struct {
		SizeBytes int64         `json:"sizeBytes"`
		Members   []groupMember `json:"members"`
	}
	if json.Unmarshal(data, &record) != nil {
		return 0
	}
	if !p.storage.promisesSnapshots && strings.HasPrefix(filepath.Base(path), snapshotPrefix) {
		return 0
	}
	size := max(0, record.SizeBytes)
	for _, m := range record.Members {
		size += max(0, m.SizeBytes)
	}
	return size
}

// groupMember has the fields of a snapshotRecord that determine its size.
type groupMember struct {
	SizeBytes int64 `json:"sizeBytes"`
}

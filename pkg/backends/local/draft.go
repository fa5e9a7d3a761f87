package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/durable"
)

// draft is a folder in staging/ that will become a volume, a snapshot or a group.
type draft struct {
	pool   *pool
	handle string
	path   string
	listed []string // the handles that it has in the pool's index
	stray  string   // the folder where it may still be, though creating it failed; else empty
}

func (p *pool) newDraft(handle string) (*draft, error) {
	path := filepath.Join(p.folder(stagingFolder), unique(handle))
	if err := os.Mkdir(path, 0o700); err != nil {
		return nil, p.explain(err)
	}
	return &draft{pool: p, handle: handle, path: path}, nil
}

// discard removes the draft in the background, and then gives back its bytes. A draft that cannot be moved to the trash
// is removed where it is: no reader looks there.
func (d *draft) discard(size int64) {
	if err := d.pool.discard(d.path, size); err != nil {
		d.pool.janitor.add(waste{path: d.path, size: size})
	}
	d.pool.index.drop(append(d.listed, d.handle)...)
}

// giveUp discards a failed draft. If it could be neither made durable in its final place nor moved back, the item may
// exist. It is then Unusable and checked again, never reported as gone. The disk counts it with the unusable items.
func (s *stock) giveUp(d *draft, size int64, why error) {
	if d.stray == "" {
		d.discard(size)
		return
	}
	for _, handle := range d.listed {
		a := &away{pool: d.pool.name, reason: recordUnreadable, why: why}
		if handle == d.handle {
			a.folder = d.stray
		}
		s.shelfOf(handle).exclude(handle, a)
	}
	if err := d.pool.discard(d.path, size); err != nil { // It is in its final place, or its place is unknown.
		d.pool.ledger.give(size)
		d.pool.janitor.later(waste{path: d.path})
	}
}

// publish moves the draft to its final place in one step and returns its new path.
//
// It syncs three times, each for something that the others do not guarantee: the record's bytes; the names in the
// draft, without which the volume could exist without its record; and the new name in the folder, without which an
// acknowledged item could disappear. With a journal the second costs almost nothing, because the first has just
// committed the same changes.
//
// It stops before the step if the context has ended. Kinds: Unavailable when the step could not be made durable.
func (d *draft) publish(ctx context.Context, folder string, record any) (string, error) {
	data, err := encode(record)
	if err != nil {
		return "", err
	}
	if err := durable.WriteNew(filepath.Join(d.path, recordFile), data); err != nil {
		return "", err
	}
	if err := durable.SyncDir(d.path); err != nil {
		return "", err
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	d.listed = []string{d.handle}
	if g, ok := record.(*groupRecord); ok {
		d.listed = g.handles()
	}
	if err := d.pool.index.add(d.listed...); err != nil {
		return "", fmt.Errorf("the index of pool %q could not be written: %w", d.pool.name, err)
	}
	d.pool.index.describeAll(record)
	return d.place(folder)
}

// place moves the draft to its final place. A server may do that and still answer with an error: the item counts as
// absent only if nothing is in its place.
func (d *draft) place(folder string) (string, error) {
	path := d.pool.entry(folder, d.handle)
	if err := durable.MoveNew(d.path, path); err != nil {
		if d.pool.lacks(path) {
			return "", err
		}
		d.stray = folder
		if errors.Is(err, os.ErrExist) {
			return "", backends.Errorf(backends.Unavailable,
				"something that start-up did not know is at %s: it is looked at, ask again", path)
		}
		return "", backends.Errorf(backends.Unavailable, "it may or may not be kept: %w", d.pool.explain(err))
	}
	if err := durable.SyncDir(filepath.Dir(path)); err != nil {
		if undo := d.pool.moveNew(path, d.path); undo != nil {
			d.stray, err = folder, errors.Join(err, undo)
		}
		return "", backends.Errorf(backends.Unavailable, "it may or may not be kept: %w", err)
	}
	return path, nil
}

package local

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/durable"
)

// releasedFolder is where the data directory keeps a note, by handle, of each volume that went out of use while its
// pool could not be written to. It outweighs the note in the volume's own folder, which says that it is in use.
const releasedFolder = "released"

// Used reports whether the volume is in use. Of one that cannot be reached now it cannot be told.
func (e *engine) Used(_ context.Context, handle string) bool {
	v, err := e.stock.volumes.get(handle)
	if err != nil {
		return !backends.Is(err, backends.NotFound)
	}
	return v.inUse.Load()
}

// Release notes that the volume is no longer in use. It is unmounted by then, so that nothing may fail which the pool
// lacks: where its own note cannot be removed the data directory gets another. Kinds: Busy while it is being copied.
func (e *engine) Release(ctx context.Context, handle string) (err error) {
	defer annotate(&err, "release volume", handle)
	v, ok := e.stock.volumes.here(handle)
	if !ok {
		if _, err := e.stock.volumes.get(handle); backends.Is(err, backends.Unusable) && isHandle(volumePrefix, handle) {
			e.unuse(handle)
			e.noteReleased(handle)
		}
		return nil
	}
	release, err := v.leave(ctx)
	if backends.Is(err, backends.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	defer release()
	e.unuse(handle)
	if err := v.clear(inUseNote); err != nil {
		v.pool.log.Warn("the note that a volume is in use cannot be removed now: it is tried again", "volume", handle,
			"error", err)
		e.noteReleased(handle)
		v.released.Store(true)
	} else if err := e.forgetReleased(v); err != nil {
		v.pool.log.Warn("the note of a release could not be removed: it is tried again", "volume", handle, "error", err)
	}
	v.inUse.Store(false)
	return nil
}

// unuse removes the note in the data directory that the volume is in use.
func (e *engine) unuse(handle string) {
	if err := e.forgetUsed(handle); err != nil {
		e.log.Warn("the note that a volume is in use cannot be removed from the data directory: after a restart of the "+
			"driver it counts as in use",
			"volume", handle, "error", err)
	}
}

func (e *engine) releasedNotes() string { return filepath.Join(e.dataDir, releasedFolder) }

func (e *engine) noteReleased(handle string) {
	err := durable.MakeAll(e.releasedNotes(), 0o700)
	if err == nil {
		err = note(handle).set(e.releasedNotes(), e.boot)
	}
	if err != nil {
		e.log.Warn("it could not be noted that a volume is no longer in use: should the driver be started again before its "+
			"pool can be "+
			"written to, it counts as in use until it is staged and unstaged, or until the machine is started again", "volume",
			handle, "error", err)
	}
}

// isReleased reports whether the volume went out of use in this boot, whatever its own note says.
func (e *engine) isReleased(v *volume) (bool, error) {
	released, err := note(v.record.Load().Handle).holds(e.releasedNotes(), e.boot)
	v.released.Store(released)
	return released, err
}

// forgetReleased removes the note before the volume comes into use again, or goes. The caller owns it.
func (e *engine) forgetReleased(v *volume) error {
	if !v.released.Load() {
		return nil
	}
	if err := note(v.record.Load().Handle).clear(e.releasedNotes()); err != nil {
		return err
	}
	v.released.Store(false)
	return nil
}

// forgetUse removes all notes of a volume that is not in use, before it goes: a volume that gets its name later has
// none. That it was released is forgotten last: whoever is killed here, or cannot delete it then, leaves no note that
// it is in use. The caller owns it.
func (e *engine) forgetUse(v *volume) error {
	if v.released.Load() {
		if err := v.clear(inUseNote); err != nil {
			return err
		}
	}
	return errors.Join(e.forgetUsed(v.record.Load().Handle), e.forgetReleased(v))
}

// dropReleased removes at the start the notes of earlier boots, which tell nothing any more.
func (e *engine) dropReleased() {
	entries, err := os.ReadDir(e.releasedNotes())
	if err != nil {
		return // There are none, or the next start tries again.
	}
	for _, entry := range entries {
		n := note(entry.Name())
		if held, err := n.holds(e.releasedNotes(), e.boot); err != nil || held || entry.Type() != fs.ModeSymlink {
			continue
		}
		if err := n.clear(e.releasedNotes()); err != nil {
			e.log.Debug("the note of a release of an earlier boot stays: it is not believed", "volume", entry.Name(),
				"error", err)
		}
	}
}

// clearReleased removes both notes of the volumes that went out of use while their pool could not be written to.
func (e *engine) clearReleased(p *pool) {
	entries, err := os.ReadDir(e.releasedNotes())
	if err != nil {
		return // There are none, or they are tried again.
	}
	for _, entry := range entries {
		if v, ok := e.stock.volumes.here(entry.Name()); ok && v.pool == p {
			e.clearNotes(v)
		}
	}
}

// clearNotes waits for nobody: who copies the volume may take hours, in which nothing else of its pool were mended.
func (e *engine) clearNotes(v *volume) {
	if !v.released.Load() {
		return
	}
	release, ok := v.leaveNow()
	if !ok {
		return // It was deleted, or is tried again.
	}
	defer release()
	if v.inUse.Load() || !v.released.Load() || v.clear(inUseNote) != nil {
		return
	}
	if err := e.forgetReleased(v); err != nil {
		v.pool.log.Warn("the note of a release could not be removed: it is tried again", "error", err)
	}
}

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

// releasedFolder is the folder of the data directory with a note, by handle, for each volume that went out of use while
// its pool was not writable. It overrides the note in the volume's folder, which says that the volume is in use.
const releasedFolder = "released"

// Used reports whether the volume is in use. It is true if the volume cannot be reached now.
func (e *engine) Used(_ context.Context, handle string) bool {
	v, err := e.stock.volumes.get(handle)
	if err != nil {
		return !backends.Is(err, backends.NotFound)
	}
	return v.inUse.Load()
}

// Release notes that the volume is no longer in use. It is already unmounted, so the pool's state must not matter: if
// its note cannot be removed, the data directory gets another. Kinds: Busy while it is being copied.
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

// unuse removes the data directory's note that the volume is in use.
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

// isReleased reports whether the volume went out of use in this boot, whatever the note in its folder says.
func (e *engine) isReleased(v *volume) (bool, error) {
	released, err := note(v.record.Load().Handle).holds(e.releasedNotes(), e.boot)
	v.released.Store(released)
	return released, err
}

// forgetReleased removes the note before the volume comes into use again or is deleted. The caller owns the volume.
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

// forgetUse removes all notes of an unused volume before it is deleted: a later volume of the name has none. The note
// of the release goes last, so that after a kill or a failed deletion no note says that the volume is in use. The
// caller owns the volume.
func (e *engine) forgetUse(v *volume) error {
	if v.released.Load() {
		if err := v.clear(inUseNote); err != nil {
			return err
		}
	}
	return errors.Join(e.forgetUsed(v.record.Load().Handle), e.forgetReleased(v))
}

// dropReleased removes the notes of earlier boots at the start. They are no longer valid.
func (e *engine) dropReleased() {
	entries, err := os.ReadDir(e.releasedNotes())
	if err != nil {
		return // There are none, or the next start retries.
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

// clearReleased removes both notes of volumes that went out of use while the pool was not writable.
func (e *engine) clearReleased(p *pool) {
	entries, err := os.ReadDir(e.releasedNotes())
	if err != nil {
		return // There are none, or this is retried.
	}
	for _, entry := range entries {
		if v, ok := e.stock.volumes.here(entry.Name()); ok && v.pool == p {
			e.clearNotes(v)
		}
	}
}

// clearNotes does not wait: a copy may take hours, in which nothing else in the pool would be mended.
func (e *engine) clearNotes(v *volume) {
	if !v.released.Load() {
		return
	}
	release, ok := v.leaveNow()
	if !ok {
		return // It was deleted, or this is retried.
	}
	defer release()
	if v.inUse.Load() || !v.released.Load() || v.clear(inUseNote) != nil {
		return
	}
	if err := e.forgetReleased(v); err != nil {
		v.pool.log.Warn("the note of a release could not be removed: it is tried again", "error", err)
	}
}

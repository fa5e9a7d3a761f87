package local

import (
	"errors"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/durable"
	"github.com/stowage-csi/stowage/pkg/failure"
	"github.com/stowage-csi/stowage/pkg/spare"
)

// usedFolder is the folder of the data directory with a note, by handle, for each volume that came into use while its
// pool had no room for one. A user who has filled a volume must be able to stage it again to free space. If the data
// directory is on the same disk, as in the default install, the note goes to spareFile, which has its room already.
const (
	usedFolder = "in-use"
	spareFile  = "spare"
)

func (e *engine) usedNotes() string { return filepath.Join(e.dataDir, usedFolder) }

// makeUsedNotes creates the places for the notes while there is room for them. If the folder cannot be created,
// noteInUse retries.
func (e *engine) makeUsedNotes() {
	var err error
	if e.spareRoom, err = spare.Open(filepath.Join(e.dataDir, spareFile)); err != nil {
		e.log.Warn("should pools and the data directory be full, no volume can come into use: "+
			"the room for notes is tried again at the next start", "error", err)
	}
	if err := durable.MakeAll(e.usedNotes(), 0o700); err != nil {
		e.log.Warn("there is no folder for notes of volumes that come into use in a full pool: it is tried again", "path",
			e.usedNotes(), "error", err)
	}
}

// noteInUse notes that the volume is in use: in its folder or, if that has no room, in the data directory.
func (e *engine) noteInUse(v *volume) error {
	err := inUseNote.set(v.dir, e.boot)
	if !failure.IsAny(err, unix.ENOSPC, unix.EDQUOT) {
		return err
	}
	failed := durable.MakeAll(e.usedNotes(), 0o700)
	handle := v.record.Load().Handle
	if failed == nil {
		failed = note(handle).set(e.usedNotes(), e.boot)
	}
	if failed == nil {
		return nil
	}
	if kept := e.spareRoom.Put(handle, []byte(e.boot)); kept != nil {
		return failure.Errorf(failure.Exhausted, "its use cannot be noted: %w; %w; %w", err, failed, kept)
	}
	return nil
}

// isInUse reports whether one of the notes says that the volume came into use in this boot.
func (e *engine) isInUse(v *volume) (inFolder, inData bool, err error) {
	inFolder, err = inUseNote.holds(v.dir, e.boot)
	if err != nil {
		return false, false, err
	}
	handle := v.record.Load().Handle
	inData, err = note(handle).holds(e.usedNotes(), e.boot)
	if err != nil {
		return false, false, err
	}
	spared, err := e.spareRoom.Get(handle)
	return inFolder, inData || string(spared) == e.boot, err
}

// forgetUsed removes the notes in the data directory.
func (e *engine) forgetUsed(handle string) error {
	return errors.Join(note(handle).clear(e.usedNotes()), e.spareRoom.Drop(handle))
}

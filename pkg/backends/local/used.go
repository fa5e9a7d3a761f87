package local

import (
	"errors"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/durable"
	"github.com/stowage-csi/stowage/pkg/failure"
)

// usedFolder is where the data directory keeps a note, by handle, of each volume that came into use while its pool had
// no room for one: whoever has filled it must be able to come back and free some.
const usedFolder = "in-use"

func (e *engine) usedNotes() string { return filepath.Join(e.dataDir, usedFolder) }

// makeUsedNotes makes the folder for the notes while there is room for it. When it is needed it is tried again.
func (e *engine) makeUsedNotes() {
	if err := durable.MakeAll(e.usedNotes(), 0o700); err != nil {
		e.log.Warn("there is no folder for notes of volumes that come into use in a full pool: it is tried again", "path",
			e.usedNotes(), "error", err)
	}
}

// noteInUse notes that the volume is in use, in its folder or, where there is no room, in the data directory.
func (e *engine) noteInUse(v *volume) error {
	err := inUseNote.set(v.dir, e.boot)
	if !failure.IsAny(err, unix.ENOSPC, unix.EDQUOT) {
		return err
	}
	failed := durable.MakeAll(e.usedNotes(), 0o700)
	if failed == nil {
		failed = note(v.record.Load().Handle).set(e.usedNotes(), e.boot)
	}
	if failed != nil {
		return errors.Join(err, failed)
	}
	return nil
}

// isInUse reports whether one of the notes says that the volume came into use in this boot.
func (e *engine) isInUse(v *volume) (inFolder, inData bool, err error) {
	inFolder, err = inUseNote.holds(v.dir, e.boot)
	if err != nil {
		return false, false, err
	}
	inData, err = note(v.record.Load().Handle).holds(e.usedNotes(), e.boot)
	return inFolder, inData, err
}

// forgetUsed removes the note in the data directory.
func (e *engine) forgetUsed(handle string) error { return note(handle).clear(e.usedNotes()) }

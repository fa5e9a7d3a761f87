package disks

import "github.com/stowage-csi/stowage/pkg/disks/method"

// touch notes that a wipe begins or goes on, and that its volume is dirty, unless it changes nothing.
func (e *Engine) touch(o *operation, size, position int64) error {
	if o.note.Method != method.None {
		if err := e.soil(o.note.Volume); err != nil {
			return err
		}
	}
	return e.progress(o, size, position)
}

// soil notes, durably, that a volume is dirty, before a wipe touches its first byte. Else a wipe that is withdrawn, or
// lost with its NodeStorage, would leave a disk that looks blank, since its beginning is, and holds the rest of its
// data. Only a whole wipe takes the note away.
func (e *Engine) soil(volume string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	note := &volumeNote{Dirty: true}
	if before := e.volumes[volume]; before != nil {
		note.Offer, note.Unproven, note.DirtyBefore = before.Offer, before.Unproven, before.Unproven
		if *note == *before {
			return nil
		}
	}
	if err := e.notes.write(volumesFolder, volume, note); err != nil {
		return err
	}
	e.volumes[volume] = note
	return nil
}

package disks

import "github.com/stowage-csi/stowage/pkg/disks/method"

// touch notes that a wipe begins or continues, and that its volume is dirty, unless the wipe changes nothing.
func (e *Engine) touch(o *operation, size, position int64) error {
	if o.note.Method != method.None {
		if err := e.soil(o.note.Volume); err != nil {
			return err
		}
	}
	return e.progress(o, size, position)
}

// soil durably notes that a volume is dirty, before a wipe changes its first byte. Otherwise a wipe that is withdrawn,
// or lost with its NodeStorage, would leave a disk that looks blank because its beginning is, and holds the rest of its
// data. Only a complete wipe removes the note.
func (e *Engine) soil(volume string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	note := &volumeNote{Dirty: true, Cut: true}
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

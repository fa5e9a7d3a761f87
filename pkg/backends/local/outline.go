package local

import (
	"bytes"
	"os"
	"path/filepath"
)

// The files of an index hold copies of the records, for lists of what is in a pool that cannot be read. Nothing else is
// decided by them. They are written in place and not synced: each start of the pool writes those again that a crash, a
// full disk or an older version left without a record.

// snapshotOutline is the copy of a snapshot's record.
type snapshotOutline struct {
	snapshotRecord

	Group string `json:"group,omitempty"` // the handle of its group
}

// describeAll writes the copies of a record, and of those in a group's record.
func (x index) describeAll(record any) {
	switch r := record.(type) {
	case *volumeRecord:
		x.describeAs(r.Handle, r)
	case *snapshotRecord:
		x.describeAs(r.Handle, snapshotOutline{snapshotRecord: *r})
	case *groupRecord:
		for _, m := range r.Members {
			x.describeAs(m.Handle, snapshotOutline{snapshotRecord: m, Group: r.Handle})
		}
	}
}

func (x index) describeAs(handle string, outline any) {
	if data, err := encode(outline); err == nil {
		x.describe(handle, data)
	}
}

// describe writes the copy of a record, unless it is there. Without one, lists know less.
func (x index) describe(handle string, data []byte) {
	path := filepath.Join(x.dir, handle)
	if now, err := os.ReadFile(path); err == nil && !bytes.Equal(now, data) {
		_ = os.WriteFile(path, data, 0o600)
	}
}

// volume returns the copy of a volume's record; nil if there is none.
func (x index) volume(handle string) *volumeRecord {
	record := new(volumeRecord)
	data, err := os.ReadFile(filepath.Join(x.dir, handle))
	if err != nil || decode(data, record) != nil || record.check(handle, record.Type) != nil {
		return nil
	}
	return record
}

// snapshot returns the copy of a snapshot's record; nil if there is none.
func (x index) snapshot(handle string) *snapshotOutline {
	outline := new(snapshotOutline)
	data, err := os.ReadFile(filepath.Join(x.dir, handle))
	if err != nil || decode(data, outline) != nil || outline.Handle != handle {
		return nil
	}
	if outline.checkContents(outline.Type) != nil {
		return nil
	}
	return outline
}

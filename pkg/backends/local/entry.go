package local

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// notOurs is the error of an entry that is certainly not a volume, a snapshot or a group: it was read, and the backend
// does not write such entries. Other errors are about the attempt, not about the entry.
type notOurs struct{ error }

// Unwrap returns the original error.
func (n notOurs) Unwrap() error { return n.error }

// contents is the result of reading a pool.
type contents struct {
	volumes   []*volume
	snapshots []*snapshot
	groups    []*group
	away      map[string]*away // entries that cannot be read now, by name
}

// handles returns all handles that were found, including members of groups.
func (c *contents) handles() []string {
	var handles []string
	for _, v := range c.volumes {
		handles = append(handles, v.record.Load().Handle)
	}
	for _, s := range c.snapshots {
		handles = append(handles, s.record.Handle)
	}
	for _, g := range c.groups {
		handles = append(handles, g.record.handles()...)
	}
	for handle := range c.away {
		handles = append(handles, handle)
	}
	return handles
}

// records returns the records of all items that were read.
func (c *contents) records() (records []any) {
	for _, v := range c.volumes {
		records = append(records, v.record.Load())
	}
	for _, s := range c.snapshots {
		records = append(records, s.record)
	}
	for _, g := range c.groups {
		records = append(records, g.record)
	}
	return records
}

// read reads one entry of a folder into contents. It fails with notOurs for an entry that is certainly not the
// backend's, with errNewer for an entry of a later version, with Unusable for the backend's own entry with a damaged
// record, and otherwise with the kernel's error.
func (p *pool) read(folder, name string) (*contents, error) {
	c := &contents{away: map[string]*away{}}
	dir := filepath.Join(p.folder(folder), name)
	info, err := os.Lstat(dir)
	if err != nil {
		return c, err
	}
	if !info.IsDir() {
		return c, notOurs{errors.New("it is not a directory")}
	}
	data, err := os.ReadFile(filepath.Join(dir, recordFile))
	switch {
	case errors.Is(err, os.ErrNotExist) && isEmpty(dir):
		return c, notOurs{err}
	case errors.Is(err, unix.EISDIR):
		return c, p.misread(name, err)
	case err != nil:
		return c, err
	}
	err = p.decode(c, folder, name, dir, data)
	if err != nil && !errors.Is(err, errNewer) {
		err = p.misread(name, err)
	}
	return c, err
}

// misread returns the error for an entry whose record is invalid or belongs to another entry. If the index has the
// handle, the entry is the backend's own, with a record that was damaged by a disk or by hand: its data exists, and
// neither its name nor its handle is free.
func (p *pool) misread(name string, err error) error {
	if !p.index.has(name) {
		return notOurs{err}
	}
	return backends.Errorf(backends.Unusable,
		"its record is damaged, and its data is there: put a copy of the record back, or move the folder out of the pool "+
			"to give it up: %w", err)
}

// isEmpty reports whether the directory exists and is empty.
func isEmpty(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && len(entries) == 0
}

// decode adds an entry of a folder to contents, with its name, its path and its record.
func (p *pool) decode(c *contents, folder, name, dir string, data []byte) error {
	switch folder {
	case volumesFolder:
		record := new(volumeRecord)
		if err := understand(data, record, name, p.storage.name); err != nil {
			return err
		}
		c.volumes = append(c.volumes, newVolume(p, dir, record))
	case snapshotsFolder:
		record := new(snapshotRecord)
		if err := understand(data, record, name, p.storage.name); err != nil {
			return err
		}
		c.snapshots = append(c.snapshots, newSnapshot(p, dir, record, ""))
	case groupsFolder:
		record := new(groupRecord)
		if err := understand(data, record, name, p.storage.name); err != nil {
			return err
		}
		c.groups = append(c.groups, newGroup(p, dir, record))
	}
	return nil
}

// understand decodes a record and checks that it belongs to the entry.
func understand(data []byte, record interface{ check(string, poolType) error }, name string, want poolType) error {
	if err := decode(data, record); err != nil {
		return err
	}
	return record.check(name, want)
}

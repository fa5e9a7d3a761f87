package ledger

import (
	"sync"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// Ledger holds the records of one node. Its methods may be called concurrently. Calls for one volume are sequential,
// because callers hold the volume's lock.
type Ledger struct {
	store store

	mu      sync.Mutex
	entries map[string]entry
	owners  map[string]string // path -> volume
	unread  unread

	reading sync.Mutex // held while unread records are read again

	tidying sync.Mutex      // held while files in left are removed
	left    map[string]bool // volumes without a record whose file could not be removed yet
}

// entry is a record and the length of the file that holds it.
type entry struct {
	record Record
	length int64
}

// Get returns the record of a volume; an empty record for an unknown volume. While Known fails, the record is unknown.
func (l *Ledger) Get(volume string) Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	if found, ok := l.entries[volume]; ok {
		return found.record.clone()
	}
	return Record{Volume: volume}
}

// Owner returns the volume that is recorded at a path; an empty string for none.
func (l *Ledger) Owner(path string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.owners[path]
}

// Records returns the records of all volumes in no particular order.
func (l *Ledger) Records() []Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	records := make([]Record, 0, len(l.entries))
	for _, e := range l.entries {
		records = append(records, e.record.clone())
	}
	return records
}

// Volumes returns the number of recorded volumes.
func (l *Ledger) Volumes() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.entries)
}

// Put replaces the record of a volume; an empty record is removed. It fails without a change when a path in the record
// belongs to another volume. After any other failure the record on disk is the old one or the new one, and the caller
// must expect either.
//
// Kinds: InUse for a path of another volume; Unavailable when the file cannot be written.
func (l *Ledger) Put(record Record) error {
	record = record.clone()
	before, err := l.claim(record)
	if err != nil {
		return err
	}
	l.leave(record.Volume, false)
	length, err := l.store.save(record, before.length)
	if err != nil {
		l.exchange(record, before.record, length)
		return err
	}
	l.exchange(before.record, record, length)
	l.tidy()
	return nil
}

// Drop replaces the record of a volume by one that claims no more, after the difference was taken down; an empty record
// is removed. The ledger uses the new record from then on, even if the file cannot be changed: freeing a volume must
// not depend on a writable disk. An error says that the file could not be changed. Its surplus claims are found to be
// untrue when the kernel is asked, and a file that was to be removed is removed with a later change.
func (l *Ledger) Drop(record Record) error {
	record = record.clone()
	l.mu.Lock()
	before := l.entries[record.Volume]
	l.mu.Unlock()
	length, err := l.store.save(record, before.length)
	if err != nil {
		length = longest // part of a line may have been written
	}
	l.exchange(before.record, record, length)
	if l.leave(record.Volume, err != nil && record.Empty()); err == nil {
		l.tidy()
	}
	return err
}

// leave notes whether the file of a volume without a record remains on disk.
func (l *Ledger) leave(volume string, left bool) {
	l.tidying.Lock()
	defer l.tidying.Unlock()
	if left {
		l.left[volume] = true
		return
	}
	delete(l.left, volume)
}

// tidy removes the files that could not be removed earlier, now that the disk accepted a change.
func (l *Ledger) tidy() {
	l.tidying.Lock()
	defer l.tidying.Unlock()
	for volume := range l.left {
		if _, err := l.store.save(Record{Volume: volume}, 0); err != nil {
			return // the next change tries again
		}
		delete(l.left, volume)
	}
}

// claim adds the record's paths to those that the volume owns. It returns the volume's current entry.
func (l *Ledger) claim(record Record) (before entry, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	paths := record.Paths()
	for _, path := range paths {
		if owner, taken := l.owners[path]; taken && owner != record.Volume {
			return entry{}, backends.Errorf(backends.InUse,
				"%s is in use by volume %q: choose another path, or take that volume down first", path, owner)
		}
	}
	for _, path := range paths {
		l.owners[path] = record.Volume
	}
	return l.entries[record.Volume], nil
}

// exchange replaces one record of a volume by another, with the paths that it owns.
func (l *Ledger) exchange(gone, record Record, length int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, path := range gone.Paths() {
		delete(l.owners, path)
	}
	if record.Empty() {
		delete(l.entries, gone.Volume)
		return
	}
	l.enter(record, length)
}

// enter adds a record. l.mu is held.
func (l *Ledger) enter(record Record, length int64) {
	l.entries[record.Volume] = entry{record, length}
	for _, path := range record.Paths() {
		l.owners[path] = record.Volume
	}
}

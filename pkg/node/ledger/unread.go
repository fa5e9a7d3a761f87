package ledger

import (
	"context"
	"errors"
	"io/fs"
	"slices"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// unread says why records are unknown: the disk did not give them. An unread record may say that its volume is in use.
type unread struct {
	room  error            // of the spare room, which may hold a later record of any volume; nil if it was read
	files map[string]error // of single records, by path
}

// Known fails while the record of a volume is unknown, and otherwise does nothing. It tries to read the record again,
// and fails at once while another call does so. Callers use the record of a volume only after Known. The report is that
// of the records that were read now. Kinds: Unavailable.
func (l *Ledger) Known(ctx context.Context, volume string) (report Report, err error) {
	err = l.Unread(volume)
	if err == nil || !l.reading.TryLock() {
		return report, err
	}
	defer l.reading.Unlock()
	if l.Unread(volume) == nil { // The call before this one has read it.
		return report, nil
	}
	if !l.lacksRoom() {
		l.load(l.store.path(volume), &report, l.takeLate)
	} else if err := l.loadAll(ctx, &report); err != nil {
		return report, err
	}
	return report, l.Unread(volume)
}

// takeLate is take for a record that is read after others were changed. Its volume could be unpublished meanwhile, and
// another one published at the target. So it gives up such targets, and is refused only for its staging path.
func (l *Ledger) takeLate(record Record, length int64) error {
	left := record.clone()
	left.Published = slices.DeleteFunc(left.Published, func(p Publication) bool {
		owner := l.Owner(p.Target)
		return owner != "" && owner != record.Volume
	})
	if err := l.take(left, length); err != nil || len(left.Published) == len(record.Published) {
		return err
	}
	_ = l.Drop(left) // The file claims too much until it can be changed, and only a restart would notice.
	return nil
}

// Unknown returns why the record of any volume is unknown; nil if all are known. Kinds: Unavailable.
func (l *Ledger) Unknown() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, err := range l.unread.files {
		return err
	}
	return l.unread.room
}

// lacksRoom reports whether the spare room is unread.
func (l *Ledger) lacksRoom() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.unread.room != nil
}

// Unread returns why the record of a volume is unknown; nil if it is known. It reads nothing. Kinds: Unavailable.
func (l *Ledger) Unread(volume string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.unread.room != nil:
		return l.unread.room
	case len(l.unread.files) == 0: // as almost always
		return nil
	}
	return l.unread.files[l.store.path(volume)]
}

// noteRoom notes whether the spare room was read.
func (l *Ledger) noteRoom(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unread.room = err
}

// noteFile notes whether a record was read.
func (l *Ledger) noteFile(path string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		delete(l.unread.files, path)
		return
	}
	l.unread.files[path] = err
}

// unreadFile returns the error for a record that could not be read; nil if it could, or is gone.
func unreadFile(path string, err error) error {
	if !errors.Is(err, errUnread) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return backends.Errorf(backends.Unavailable, "the record %s of a volume: %w: mend the disk, or remove the file if "+
		"nothing uses the volume", path, err)
}

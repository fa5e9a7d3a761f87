package ledger

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/spare"
)

// bootIDPath holds a random number that the kernel makes at each start (random(4)).
const bootIDPath = "/proc/sys/kernel/random/boot_id"

// Report tells what Open found.
type Report struct {
	Loaded int // records that count
	Stale  int // records of an earlier boot, removed
	// SetAside are files that could not be read as records, with the reason. They were renamed, where that was possible,
	// so that somebody can look at them; the volumes that they were of count as unknown.
	SetAside []SetAside
}

// SetAside is a file that is no record.
type SetAside struct {
	Path   string // where it is now
	Reason error
}

// BootID returns what tells this boot of the machine from all others.
func BootID() (string, error) {
	data, err := os.ReadFile(bootIDPath)
	if err != nil {
		return "", backends.Errorf(backends.Unavailable, "cannot tell this boot from others: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}

// Open loads the ledger in a directory, which it makes when it is not there and which must be the
// driver's own. Records of another boot are removed. Those for which the disk has no room go to the room that was kept,
// unless that is nil. Kinds: Unavailable when the directory or a file in it cannot be read.
func Open(ctx context.Context, dir, boot string, room *spare.Room) (*Ledger, Report, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, Report{}, backends.Errorf(backends.Unavailable, "cannot make the ledger's directory: %w", err)
	}
	files, err := list(dir)
	if err != nil {
		return nil, Report{}, backends.Errorf(backends.Unavailable, "cannot read the ledger's directory: %w", err)
	}
	l := &Ledger{
		store: store{dir, boot, room}, entries: map[string]entry{}, owners: map[string]string{}, left: map[string]bool{},
	}
	var report Report
	later := l.loadRoom(&report)
	for _, path := range files {
		if err := ctx.Err(); err != nil {
			return nil, Report{}, backends.Errorf(backends.Unavailable, "loading the ledger was cut short: %w", err)
		}
		if later[path] {
			continue
		}
		if err := l.load(path, &report); err != nil {
			return nil, Report{}, err
		}
	}
	report.Loaded = len(l.entries)
	return l, report, nil
}

// list returns the paths in a directory.
func list(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	paths := make([]string, len(entries))
	for i, entry := range entries {
		paths[i] = filepath.Join(dir, entry.Name())
	}
	return paths, nil
}

// load takes in one file of the directory, or clears it away. One that cannot be cleared away, on a disk that takes no
// writes, is in nobody's way: it counts for nothing, and the next record of its volume replaces it. One that cannot be
// read may say that its volume is in use. Kinds: Unavailable then.
func (l *Ledger) load(path string, report *Report) error {
	switch filepath.Ext(path) {
	case tempEnding:
		_ = os.Remove(path) // see above
		return nil
	case recordEnding:
	default:
		return nil
	}
	record, length, err := l.store.read(path)
	if err == nil {
		err = l.clash(record)
	}
	switch {
	case errors.Is(err, errUnread):
		return backends.Errorf(backends.Unavailable, "the record %s of a volume: %w: mend the disk, or remove the file if "+
			"nothing uses the volume", path, err)
	case errors.Is(err, errOtherBoot):
		report.Stale++
		_ = os.Remove(path) // see above
	case err != nil:
		report.SetAside = append(report.SetAside, setAside(path, err))
	default:
		l.enter(record, length)
	}
	return nil
}

// loadRoom takes in what is in the room that was kept, and returns the files of these volumes: they were written
// earlier, and may claim paths that others have taken since.
func (l *Ledger) loadRoom(report *Report) (later map[string]bool) {
	later = map[string]bool{}
	for volume, line := range l.store.room.Notes() {
		path := l.store.path(volume)
		record, err := l.store.decode(path, line)
		if err == nil {
			err = l.clash(record)
		}
		switch {
		case err == nil:
			l.enter(record, longest)
			later[path] = true
			continue
		case errors.Is(err, errOtherBoot):
			report.Stale++
		default:
			reason := fmt.Errorf("in the room that was kept: %w", err)
			report.SetAside = append(report.SetAside, SetAside{Path: path, Reason: reason})
		}
		_ = l.store.room.Drop(volume) // If it stays it counts for as little the next time.
	}
	return later
}

// clash reports whether another record has a path of this one, which no ledger writes.
func (l *Ledger) clash(record Record) error {
	for _, path := range record.Paths() {
		if owner := l.owners[path]; owner != "" {
			return fmt.Errorf("it claims %s, which volume %q claims too", path, owner)
		}
	}
	return nil
}

func setAside(path string, reason error) SetAside {
	if err := os.Rename(path, path+asideEnding); err != nil {
		return SetAside{Path: path, Reason: errors.Join(reason, err)}
	}
	return SetAside{Path: path + asideEnding, Reason: reason}
}

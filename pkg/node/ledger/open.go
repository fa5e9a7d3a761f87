package ledger

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/spare"
)

// bootIDPath holds a random number that the kernel generates at each boot (random(4)).
const bootIDPath = "/proc/sys/kernel/random/boot_id"

// Report is what Open found.
type Report struct {
	Loaded int // records that are valid
	Stale  int // records of an earlier boot, removed
	// SetAside lists files that could not be read as records, with the reason. They were renamed for inspection, if that
	// was possible. Their volumes count as unknown.
	SetAside []SetAside
}

// SetAside is a file that is not a valid record.
type SetAside struct {
	Path   string // where it is now
	Reason error
}

// BootID returns an identifier of this boot of the machine.
func BootID() (string, error) {
	data, err := os.ReadFile(bootIDPath)
	if err != nil {
		return "", backends.Errorf(backends.Unavailable, "cannot tell this boot from others: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}

// Open loads the ledger in a directory that only the driver uses, and creates it if necessary. Records of another boot
// are removed. A record for which the disk has no room goes to the spare room, unless that is nil. Kinds: Unavailable
// when the directory, a file in it or the spare room cannot be read.
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
	later, err := l.loadRoom(&report)
	if err != nil {
		return nil, Report{}, err
	}
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
	dropAsides(dir, report.SetAside)
	report.Loaded = len(l.entries)
	return l, report, nil
}

// asidesKept is how many files that were set aside stay for inspection: each may have longest bytes.
const asidesKept = 64

// dropAsides removes the oldest files that earlier starts set aside, until no more than asidesKept are left. It keeps
// those of this start, however many there are: the log has just named them. A file that cannot be removed does no harm.
func dropAsides(dir string, fresh []SetAside) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // The next start tries again.
	}
	var old []fs.FileInfo
	for _, entry := range entries {
		isFresh := func(aside SetAside) bool { return aside.Path == filepath.Join(dir, entry.Name()) }
		if filepath.Ext(entry.Name()) != asideEnding || !entry.Type().IsRegular() || slices.ContainsFunc(fresh, isFresh) {
			continue
		}
		if info, err := entry.Info(); err == nil {
			old = append(old, info)
		}
	}
	slices.SortFunc(old, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	for _, info := range old[min(len(old), max(0, asidesKept-len(fresh))):] {
		_ = os.Remove(filepath.Join(dir, info.Name())) // see above
	}
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

// load reads one file of the directory, or removes it. A file that cannot be removed, on a disk that takes no writes,
// does no harm: it counts for nothing, and the next record of its volume replaces it. A file that cannot be read may
// say that its volume is in use. Kinds: Unavailable then.
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

// loadRoom reads the records in the spare room, and returns the files of their volumes. These files are older, and may
// claim paths that other volumes have taken since. Kinds: Unavailable when the room cannot be read.
func (l *Ledger) loadRoom(report *Report) (later map[string]bool, err error) {
	notes, err := l.store.room.Notes()
	if err != nil {
		return nil, err
	}
	later = map[string]bool{}
	for volume, line := range notes {
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
		_ = l.store.room.Drop(volume) // If it stays, it is rejected again next time.
	}
	return later, nil
}

// clash refuses a record with a path that another record has, which no ledger writes.
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

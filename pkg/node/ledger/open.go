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

// Report is what Open or Known found.
type Report struct {
	All    bool // the whole ledger was read, apart from Unread
	Loaded int  // records that are valid
	Stale  int  // records of an earlier boot, removed
	// SetAside lists files that could not be read as records, with the reason. They were renamed for inspection, if that
	// was possible. Their volumes count as unknown.
	SetAside []SetAside
	// Unread lists why records could not be read. Their volumes are unknown until Known has read them.
	Unread []error
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
// are removed. A record for which the disk has no room goes to the spare room, unless that is nil. A file that cannot
// be read concerns only its volume, and an unreadable spare room all volumes (Known). Kinds: Unavailable when the
// directory cannot be read.
func Open(ctx context.Context, dir, boot string, room *spare.Room) (*Ledger, Report, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, Report{}, backends.Errorf(backends.Unavailable, "cannot make the ledger's directory: %w", err)
	}
	l := &Ledger{
		store: store{dir, boot, room}, entries: map[string]entry{}, owners: map[string]string{}, left: map[string]bool{},
		unread: unread{files: map[string]error{}},
	}
	var report Report
	if err := l.loadAll(ctx, &report); err != nil {
		return nil, Report{}, err
	}
	dropAsides(dir, report.SetAside)
	return l, report, nil
}

// loadAll reads the spare room, and then the files of the directory. Without the room the files mean nothing, because
// they may be older. Kinds: Unavailable when the directory cannot be read, or the context ends.
func (l *Ledger) loadAll(ctx context.Context, report *Report) error {
	files, err := list(l.store.dir)
	if err != nil {
		return backends.Errorf(backends.Unavailable, "cannot read the ledger's directory: %w", err)
	}
	later, err := l.loadRoom(report)
	if err != nil {
		report.Unread = append(report.Unread, err)
		l.noteRoom(err)
		return nil
	}
	for _, path := range files {
		if err := ctx.Err(); err != nil {
			err = backends.Errorf(backends.Unavailable, "loading the ledger was cut short: %w", err)
			l.noteRoom(err) // until all is read
			return err
		}
		if !later[path] {
			l.load(path, report, l.take)
		}
	}
	report.All, report.Loaded = true, l.Volumes()
	l.noteRoom(nil)
	return nil
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

// load reads one file of the directory for take, or removes it. A file that cannot be removed, on a disk that takes no
// writes, does no harm: it counts for nothing, and the next record of its volume replaces it.
func (l *Ledger) load(path string, report *Report, take func(record Record, length int64) error) {
	switch filepath.Ext(path) {
	case tempEnding:
		_ = os.Remove(path) // see above
		return
	case recordEnding:
	default:
		return
	}
	record, length, err := l.store.read(path)
	if err == nil {
		err = take(record, length)
	}
	unknown := unreadFile(path, err)
	switch {
	case unknown != nil:
		report.Unread = append(report.Unread, unknown)
	case errors.Is(err, errOtherBoot):
		report.Stale++
		_ = os.Remove(path) // see above
	case err != nil && !errors.Is(err, errUnread): // not gone meanwhile
		report.SetAside = append(report.SetAside, setAside(path, err))
	}
	l.noteFile(path, unknown)
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
			err = l.take(record, longest)
		}
		switch {
		case err == nil:
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

// take adds a record that was read, unless another one has one of its paths.
func (l *Ledger) take(record Record, length int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.clash(record); err != nil {
		return err
	}
	l.enter(record, length)
	return nil
}

// clash refuses a record with a path that another record has, which no ledger writes. l.mu is held.
func (l *Ledger) clash(record Record) error {
	for _, path := range record.Paths() {
		if owner := l.owners[path]; owner != "" && owner != record.Volume {
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

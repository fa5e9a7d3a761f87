package mount

import (
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// Table is what is mounted in this mount namespace at one instant. Reading it takes time in proportion to the number of
// mounts. It is for questions that have no other answer, and not for the hot path.
type Table struct{ byID map[int]*mountinfo.Info }

// ReadTable reads the mount table. Kinds: Unavailable.
func ReadTable() (Table, error) {
	infos, err := mountinfo.GetMounts(nil)
	if err != nil {
		return Table{}, backends.Errorf(backends.Unavailable, "cannot tell what is mounted on this node: %w", err)
	}
	t := Table{byID: make(map[int]*mountinfo.Info, len(infos))}
	for _, info := range infos {
		t.byID[info.ID] = info
	}
	return t, nil
}

// Entry is one mount of a table.
type Entry struct{ *mountinfo.Info }

// At returns the mount at a path. It finds it by the mount's ID, because the table has paths without symlinks. ok is
// false when nothing is mounted there. A filesystem whose server does not answer is not asked. Kinds: as Inspect.
func (t Table) At(path string) (m Entry, ok bool, err error) {
	state, err := glance(path, unix.AT_STATX_DONT_SYNC)
	if err != nil || !state.Mounted {
		return Entry{}, false, err
	}
	m.Info, ok = t.byID[int(state.MountID)]
	return m, ok, nil
}

// Device returns the number of the block device that a filesystem is on, and 0 for none. A btrfs has a device number of
// its own, so its source is looked up instead.
func (m Entry) Device() uint64 {
	if m.FSType != "btrfs" {
		return unix.Mkdev(uint32(m.Major), uint32(m.Minor))
	}
	var stat unix.Stat_t
	if err := unix.Stat(m.Source, &stat); err != nil || stat.Mode&unix.S_IFMT != unix.S_IFBLK {
		return 0
	}
	return stat.Rdev
}

// Part is a file or directory of a filesystem with everything below it, as the mount table represents it.
type Part struct {
	shows func(Entry) bool
	// known are mounts that show the part and that Where leaves out.
	known []Entry
}

// Shown returns the part that is mounted at m. The mounts at the path that it was bound from are known too.
func (t Table) Shown(m Entry, from string) Part {
	known := []Entry{m}
	for _, info := range t.byID {
		if info.Mountpoint == from {
			known = append(known, Entry{info})
		}
	}
	return Part{known: known,
		shows: func(other Entry) bool { return sameFilesystem(m, other) && within(other.Root, m.Root) }}
}

// OnDevice returns the whole filesystem on a block device.
func (t Table) OnDevice(number uint64) Part {
	return Part{shows: func(m Entry) bool { return m.Device() == number }}
}

// Of returns the file or directory at a path; a part that nothing shows if it does not exist. The mount that the path
// is on is known. Kinds: Unavailable when the path cannot be looked at.
func (t Table) Of(at string) (Part, error) {
	plain, err := filepath.EvalSymlinks(at)
	if errors.Is(err, fs.ErrNotExist) {
		return Part{shows: func(Entry) bool { return false }}, nil
	}
	if err != nil {
		return Part{}, backends.Errorf(backends.Unavailable, "looking at %q: %w", at, err)
	}
	state, err := glance(plain, unix.AT_STATX_DONT_SYNC)
	if err != nil {
		return Part{}, err
	}
	on, ok := t.byID[int(state.MountID)]
	if !ok {
		return Part{}, backends.Errorf(backends.Unavailable, "the mount that %q is on has changed meanwhile", at)
	}
	root := path.Join(on.Root, strings.TrimPrefix(plain, on.Mountpoint))
	return Part{known: []Entry{{on}},
		shows: func(m Entry) bool { return sameFilesystem(Entry{on}, m) && within(m.Root, root) }}, nil
}

// Where returns the paths at which the parts show, except those of known mounts.
func (t Table) Where(parts ...Part) []string {
	var known []Entry
	for _, p := range parts {
		known = append(known, p.known...)
	}
	var paths []string
	for _, info := range t.byID {
		m := Entry{info}
		news := !slices.ContainsFunc(known, func(k Entry) bool { return t.samePlace(k, m) })
		if news && slices.ContainsFunc(parts, func(p Part) bool { return p.shows(m) }) {
			paths = append(paths, m.Mountpoint)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// sameFilesystem reports whether two mounts are of one filesystem. Exports of one server may share a device number, but
// then have different sources.
func sameFilesystem(a, b Entry) bool {
	return a.Major == b.Major && a.Minor == b.Minor && a.FSType == b.FSType && a.Source == b.Source
}

// samePlace reports whether two mounts are attached to the same directory or file. That is also true of the copies that
// propagation makes of a mount (mount_namespaces(7)), which go with it.
func (t Table) samePlace(a, b Entry) bool {
	if a.Mountpoint == b.Mountpoint {
		return true
	}
	below, other := t.byID[a.Parent], t.byID[b.Parent]
	return below != nil && other != nil && sameFilesystem(Entry{below}, Entry{other}) &&
		placeIn(below, a) == placeIn(other, b)
}

// placeIn returns where in the filesystem of its parent a mount is attached.
func placeIn(parent *mountinfo.Info, m Entry) string {
	return path.Join(parent.Root, strings.TrimPrefix(m.Mountpoint, parent.Mountpoint))
}

// within reports whether a path is the directory or file, or below it.
func within(file, dir string) bool {
	return file == dir || strings.HasPrefix(file, strings.TrimSuffix(dir, "/")+"/")
}

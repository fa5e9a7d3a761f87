package local

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/tests/testfs"
)

// isAway checks that the volume "one" exists but cannot be used by any call, and that the errors mention why.
func (f *fixture) isAway(handle string, mentions ...string) {
	f.Helper()
	const name = "one"
	ctx := f.Context()
	for what, err := range map[string]error{
		"Get":            second(f.Get(ctx, handle)),
		"Find":           second(f.Find(ctx, backends.Spec{Name: name})),
		"Create":         second(f.Create(ctx, specIn("directory", name))),
		"Delete":         f.Delete(ctx, handle),
		"Source":         second(f.Source(ctx, backends.Attachment{Handle: handle})),
		"Expand":         second(f.Expand(ctx, handle, backends.CapacityRange{RequiredBytes: 8 << 20})),
		"Modify":         f.Modify(ctx, handle, &Mutable{OnDelete: pointer(retainData)}),
		"Clone":          second(f.Clone(ctx, specIn("directory", name+" cloned"), handle)),
		"CreateSnapshot": second(f.CreateSnapshot(ctx, backends.SnapshotSpec{Name: name + " taken", Volume: handle})),
		"CreateGroup":    second(f.CreateGroup(ctx, backends.GroupSpec{Name: name + " taken", Volumes: []string{handle}})),
	} {
		hasKind(f, what, err, backends.Unusable, mentions...)
	}
	if err := f.Release(ctx, handle); err != nil {
		f.Errorf("Release: %v", err)
	}
	f.hasHealth(handle, backends.Inaccessible, f.healthReason(handle))
	listed, _, err := f.List(ctx, backends.Page{})
	if err != nil || !slices.ContainsFunc(listed, func(v backends.Volume) bool { return v.Handle == handle }) {
		f.Errorf("the list is %+v, %v; it lacks %s", listed, err, handle)
	}
}

func (f *fixture) healthReason(handle string) string {
	f.Helper()
	unwell, _, err := f.ListHealth(f.Context(), backends.Page{})
	must(f, err)
	for _, v := range unwell {
		if v.Handle == handle {
			return v.Issues[0].Reason
		}
	}
	f.Errorf("those unwell are %+v, without %s", unwell, handle)
	return ""
}

// copiesAreAway checks the same for a snapshot and a group.
func (f *fixture) copiesAreAway(snapshot, group string) {
	f.Helper()
	ctx := f.Context()
	s, g := handleOf(snapshotPrefix, snapshot), handleOf(groupPrefix, group)
	for what, err := range map[string]error{
		"GetSnapshot":    second(f.GetSnapshot(ctx, s)),
		"FindSnapshot":   second(f.FindSnapshot(ctx, backends.SnapshotSpec{Name: snapshot})),
		"CreateSnapshot": second(f.CreateSnapshot(ctx, backends.SnapshotSpec{Name: snapshot, Volume: "any"})),
		"DeleteSnapshot": f.DeleteSnapshot(ctx, s),
		"Restore":        second(f.Restore(ctx, specIn("directory", "restored"), s)),
		"GetGroup":       second(f.GetGroup(ctx, g)),
		"FindGroup":      second(f.FindGroup(ctx, group)),
		"CreateGroup":    second(f.CreateGroup(ctx, backends.GroupSpec{Name: group, Volumes: []string{"any"}})),
		"DeleteGroup":    f.DeleteGroup(ctx, g),
		"GetMember":      second(f.GetSnapshot(ctx, memberHandle(g, 0))),
		"RestoreMember":  second(f.Restore(ctx, specIn("directory", "restored"), memberHandle(g, 0))),
		"DeleteMember":   f.DeleteSnapshot(ctx, memberHandle(g, 0)),
	} {
		hasKind(f, what, err, backends.Unusable)
	}
	if _, _, err := f.ListSnapshots(ctx, "", backends.Page{}); err != nil {
		f.Errorf("ListSnapshots: %v", err)
	}
}

// unread returns ways to make a record unreadable; each returns a function that repairs it.
func unread() map[string]func(f *fixture, record string) (heal func() error) {
	moved := func(record string, put func() error) func() error {
		spoilt := errors.Join(os.Rename(record, record+".kept"), put())
		return func() error { return errors.Join(spoilt, os.Remove(record), os.Rename(record+".kept", record)) }
	}
	return map[string]func(f *fixture, record string) func() error{
		"too many links": func(_ *fixture, record string) func() error {
			return moved(record, func() error { return os.Symlink(record, record) })
		},
		"no such device": func(_ *fixture, record string) func() error {
			return moved(record, func() error {
				short := filepath.Join(os.TempDir(), fmt.Sprintf("s%d", os.Getpid())) // The path of a socket must be short.
				l, err := net.ListenUnix("unix", &net.UnixAddr{Name: short, Net: "unix"})
				if err != nil {
					return err
				}
				l.SetUnlinkOnClose(false)
				return errors.Join(l.Close(), os.Rename(short, record))
			})
		},
		"an I/O error": func(f *fixture, record string) func() error {
			testfs.NeedRoot(f)
			testfs.Run(f, "mount", "--bind", fmt.Sprintf("/proc/%d/mem", os.Getpid()), record) // Nothing is mapped at address 0.
			return func() error { testfs.Run(f, "umount", record); return nil }
		},
		"no such file": func(_ *fixture, record string) func() error {
			gone := os.Rename(record, record+".kept")
			return func() error { return errors.Join(gone, os.Rename(record+".kept", record)) }
		},
		"a newer version": func(_ *fixture, record string) func() error {
			return moved(record, func() error { return writeFile(record, `{"version":2,"shape":"round"}`) })
		},
	}
}

func TestWhatCannotBeReadNowKeepsItsNameAndPlace(t *testing.T) {
	for name, spoil := range unread() {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			v, other := f.create("image", "one"), f.create("image", "other")
			s := f.snapshot("one", v.Handle)
			g, err := f.CreateGroup(t.Context(), backends.GroupSpec{Name: "one", Volumes: []string{v.Handle}})
			must(t, err)
			p := f.in("image")
			f.shut()
			var heal []func() error
			for folder, handle := range map[string]string{volumesFolder: v.Handle, snapshotsFolder: s.Handle,
				groupsFolder: g.Handle} {
				record := filepath.Join(p.folder(folder), handle, recordFile)
				heal = append(heal, spoil(f, record))
			}
			f.open()
			f.isAway(v.Handle)
			f.copiesAreAway("one", "one")
			f.holdsOnly("volumes/"+v.Handle, "volumes/"+other.Handle, "snapshots/"+s.Handle, "groups/"+g.Handle)
			must(t, f.Release(t.Context(), v.Handle))
			if issues, err := f.Inspect(t.Context()); err != nil || len(issues) != 1 ||
				!strings.Contains(issues[0].Message, "image") {
				t.Errorf("the issues are %+v, %v", issues, err)
			}
			f.use(other.Handle) // Healthy volumes are served.
			must(t, f.Release(t.Context(), other.Handle))
			must(t, f.Delete(t.Context(), other.Handle))
			f.mend()
			f.isAway(v.Handle)
			for _, h := range heal {
				must(t, h())
			}
			f.mend()
			f.use(v.Handle)
			must(t, f.Release(t.Context(), v.Handle))
			f.promised(12 << 20)
			must(t, f.Delete(t.Context(), v.Handle))
			must(t, f.DeleteSnapshot(t.Context(), s.Handle))
			must(t, f.DeleteGroup(t.Context(), g.Handle))
			f.promised(0)
			f.holdsOnly()
		})
	}
}

func TestWhatWasMovedOutOfThePoolIsGone(t *testing.T) {
	f := newFixture(t)
	v := f.create("image", "one")
	record := filepath.Join(f.dir(v.Handle), recordFile)
	dir := f.dir(v.Handle)
	f.shut()
	must(t, os.Remove(record))
	f.open()
	f.isAway(v.Handle, "move the folder out of the pool")
	must(t, os.Rename(dir, filepath.Join(t.TempDir(), "elsewhere")))
	f.mend()
	_, err := f.Get(t.Context(), v.Handle)
	hasKind(t, "Get", err, backends.NotFound)
	f.create("image", "one")
}

// TestUseThatIsNotKnown has an unreadable note: the volume may be in use, so it cannot be deleted.
func TestUseThatIsNotKnown(t *testing.T) {
	f := newFixture(t)
	v := f.create("image", "one")
	f.shut()
	released := filepath.Join(f.options.DataDir, "released")
	must(t, os.Symlink(released, released)) // Every lookup in it fails with ELOOP.
	f.open()
	f.isAway(v.Handle)
	must(t, os.Remove(released))
	f.mend()
	must(t, f.Delete(t.Context(), v.Handle))
}

// TestUseInARoomThatCannotBeRead has a note in the spare room, as of a volume that came into use on a full disk. While
// the room cannot be read, the volume may be in use, so it cannot be deleted.
func TestUseInARoomThatCannotBeRead(t *testing.T) {
	f := newFixture(t)
	v := f.create("image", "one")
	must(t, f.spareRoom.Put(v.Handle, []byte(f.boot)))
	f.shut()
	room := filepath.Join(f.options.DataDir, spareFile)
	must(t, os.Rename(room, room+".kept"))
	must(t, os.Symlink(room, room)) // Every look at it fails with ELOOP.
	f.open()
	f.isAway(v.Handle, room, "remove the file if nothing on the node uses a volume")
	must(t, errors.Join(os.Remove(room), os.Rename(room+".kept", room)))
	f.mend()
	hasKind(t, "Delete of what is in use", f.Delete(t.Context(), v.Handle), backends.InUse, "node-1")
	must(t, f.Release(t.Context(), v.Handle))
	must(t, f.Delete(t.Context(), v.Handle))
	f.holdsOnly()
}

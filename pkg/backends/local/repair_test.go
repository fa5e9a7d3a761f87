package local

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// TestEveryStepOfCreate constructs the state after a crash at each step of a creation.
func TestEveryStepOfCreate(t *testing.T) {
	f := newFixture(t)
	kept := f.create("directory", "kept")
	staging := f.in("directory").folder(stagingFolder)
	f.shut()
	draft := filepath.Join(staging, unique(handleOf(volumePrefix, "one")))
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"the draft's folder", func() error { return os.Mkdir(draft, 0o700) }},
		{"the data", func() error { return os.Mkdir(filepath.Join(draft, "data"), 0o755) }},
		{"half a copy", func() error { return os.MkdirAll(filepath.Join(draft, "data.links", "a", "b"), 0o700) }},
		{"an empty record", func() error { return os.WriteFile(filepath.Join(draft, recordFile), nil, 0o600) }},
		{"a record", func() error {
			data, err := encode(&volumeRecord{Version: 1, Handle: handleOf(volumePrefix, "one"), Name: "one", Type: directory,
				SizeBytes: 4 << 20})
			return errors.Join(err, os.WriteFile(filepath.Join(draft, recordFile), data, 0o600))
		}},
		{"a record that was to replace another", func() error { return writeFile(filepath.Join(staging, "record"), "{") }},
	} {
		must(t, os.MkdirAll(filepath.Dir(draft), 0o700))
		if step.name != "the draft's folder" {
			must(t, os.MkdirAll(draft, 0o700))
		}
		must(t, step.do())
		f.open()
		f.holdsOnly("volumes/" + kept.Handle)
		f.promised(4 << 20)
		f.shut()
	}
}

// TestEveryStepOfDelete constructs the state after a crash at each step of a deletion.
func TestEveryStepOfDelete(t *testing.T) {
	f := newFixture(t)
	for name, half := range map[string]func(trash string) error{
		"moved":        func(string) error { return nil },
		"half removed": func(trash string) error { return os.Remove(filepath.Join(trash, recordFile)) },
		"flattened":    func(trash string) error { return os.Rename(filepath.Join(trash, "data"), trash+".1") },
	} {
		v := f.create("directory", name)
		must(t, os.MkdirAll(filepath.Join(f.data(v.Handle), "some", "tree"), 0o700))
		dir, p := f.dir(v.Handle), f.in("directory")
		f.shut()
		trash := filepath.Join(p.folder(trashFolder), unique(v.Handle))
		must(t, os.Rename(dir, trash))
		must(t, half(trash))
		f.open()
		_, err := f.Get(t.Context(), v.Handle)
		hasKind(t, name, err, backends.NotFound)
		f.holdsOnly()
		f.promised(0)
	}
}

func TestTrashKeepsItsSpaceUntilItIsGone(t *testing.T) {
	f := newFixture(t)
	v := f.create("image", "one")
	s := f.snapshot("s", v.Handle)
	g, err := f.CreateGroup(t.Context(), backends.GroupSpec{Name: "g", Volumes: []string{v.Handle}})
	must(t, err)
	p := f.in("image")
	for handle, folder := range map[string]string{v.Handle: volumesFolder, s.Handle: snapshotsFolder,
		g.Handle: groupsFolder} {
		if cost := p.costOfTrash(filepath.Join(p.folder(folder), handle)); cost != 4<<20 {
			t.Errorf("what is in %s costs %d, want %d", folder, cost, 4<<20)
		}
	}
	d := f.create("directory", "two")
	ds := f.snapshot("ds", d.Handle)
	q := f.in("directory")
	if cost := q.costOfTrash(filepath.Join(q.folder(snapshotsFolder), ds.Handle)); cost != 0 {
		t.Errorf("the snapshot of a directory costs %d, want 0", cost)
	}
	must(t, writeFile(filepath.Join(q.folder(stagingFolder), recordFile), "{"))
	if cost := q.costOfTrash(q.folder(stagingFolder)); cost != 0 {
		t.Errorf("what has no record costs %d, want 0", cost)
	}
}

// A tree that is too deep is removed in pieces, which are moved beside it. If the removal of the pieces fails, it is
// retried.
func TestPiecesOfTrashAreRemovedToo(t *testing.T) {
	f := newFixture(t)
	f.settle()
	p := f.in("directory")
	path := p.entry(trashFolder, "deep")
	for _, piece := range []string{path + ".1", path + ".2", path + "er"} {
		must(t, os.Mkdir(piece, 0o700))
	}
	p.ledger.add(1 << 20)
	p.janitor.later(waste{path: path, size: 1 << 20, told: true})
	f.promised(1 << 20)
	f.mend()
	f.holdsOnly("trash/deeper")
	f.promised(0)
	must(t, os.Remove(path+"er"))
}

// Items that a crash left for removal count with the space that they hold: their blocks are free only once they are
// removed.
func TestWhatACrashLeftHoldsWhatItTakes(t *testing.T) {
	f := newFixture(t)
	f.settle()
	p := f.in("image")
	p.reflink.Store(false) // Shared blocks do not count.
	p.janitor.stop()       // Nothing is removed.
	for _, path := range []string{
		p.entry(stagingFolder, "a draft/image"), p.entry(stagingFolder, "a group/1/image"),
		p.entry(trashFolder, "half removed/image"), p.entry(trashFolder, "half of a group/0/image"),
	} {
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(t, os.WriteFile(path, make([]byte, 1<<20), 0o600))
	}
	must(t, p.sweep(&report{}))
	if held := f.stock.held([]*pool{p}).bytes; held < 4<<20 || p.ledger.sum() != held {
		t.Errorf("%d bytes are held, and %d promised", held, p.ledger.sum())
	}
	f.reopen()
	f.holdsOnly()
	f.promised(0)
}

// TestEveryStepOfExpand constructs the state after a crash at each step of growing an image.
func TestEveryStepOfExpand(t *testing.T) {
	f := newFixture(t)
	for _, allocation := range []string{sparse, full} {
		for name, image := range map[string]int64{"intent": 4 << 20, "half": 6 << 20, "grown": 8 << 20} {
			spec := specIn("image", allocation+name)
			spec.Parameters = &Parameters{Allocation: allocation}
			v, err := f.Create(t.Context(), spec)
			must(t, err)
			record := *f.volumesRecord(v.Handle)
			record.SizeBytes, record.ExpandingFromBytes = 8<<20, 4<<20
			held, err := f.stock.volumes.get(v.Handle)
			must(t, err)
			must(t, held.replaceRecord(&record))
			must(t, os.Truncate(held.data(), image))
			f.reopen()
			got, err := f.Get(t.Context(), v.Handle)
			must(t, err)
			info, err := os.Stat(f.data(v.Handle))
			must(t, err)
			if got.CapacityBytes != 8<<20 || info.Size() != 8<<20 || f.volumesRecord(v.Handle).ExpandingFromBytes != 0 {
				t.Errorf("%s, %s: the volume has %d bytes and its image %d, want %d", allocation, name, got.CapacityBytes,
					info.Size(), 8<<20)
			}
			must(t, f.Delete(t.Context(), v.Handle))
			f.promised(0)
		}
	}
}

// A pending growth in a directory's record, which no version writes, is completed like an image's.
func TestDirectoryThatIsBeingGrown(t *testing.T) {
	f := newFixture(t)
	v := f.create("directory", "one")
	f.rewrites(v.Handle, func(r *volumeRecord) { r.SizeBytes, r.ExpandingFromBytes = 8<<20, 4<<20 })
	for range 2 {
		f.reopen()
		got, err := f.Get(t.Context(), v.Handle)
		must(t, err)
		if r := f.volumesRecord(v.Handle); got.CapacityBytes != 8<<20 || r.ExpandingFromBytes != 0 {
			t.Errorf("the volume has %d bytes, want %d, and the record is %+v", got.CapacityBytes, 8<<20, r)
		}
		f.promised(8 << 20)
	}
}

func TestGrowingDoesNotHideLostData(t *testing.T) {
	f := newFixture(t)
	v := f.create("image", "one")
	record := *f.volumesRecord(v.Handle)
	record.SizeBytes, record.ExpandingFromBytes = 8<<20, 4<<20
	held, err := f.stock.volumes.get(v.Handle)
	must(t, err)
	must(t, held.replaceRecord(&record))
	must(t, os.Truncate(held.data(), 4096))
	f.reopen()
	if !strings.Contains(f.log.String(), "could not be grown") {
		t.Errorf("the log says nothing:\n%s", f.log)
	}
	f.hasHealth(v.Handle, backends.DataLoss, "ImageTruncated")
	_, err = f.Expand(t.Context(), v.Handle, backends.CapacityRange{RequiredBytes: 8 << 20})
	hasKind(t, "Expand", err, backends.Unavailable, "damaged")
	if r := f.volumesRecord(v.Handle); r.ExpandingFromBytes != 4<<20 || r.SizeBytes != 8<<20 {
		t.Errorf("the record is %+v", r)
	}
	must(t, os.Truncate(f.data(v.Handle), 4<<20)) // The data was restored.
	if e, err := f.Expand(t.Context(), v.Handle, backends.CapacityRange{RequiredBytes: 8 << 20}); err != nil ||
		e.CapacityBytes != 8<<20 {
		t.Errorf("the next expansion: %+v, %v", e, err)
	}
	f.promised(8 << 20)
}

func TestWhatCannotBeUnderstoodIsSetAside(t *testing.T) {
	for name, spoil := range map[string]func(dir string) error{
		"another's record": func(dir string) error { return os.Rename(dir, dir[:len(dir)-4]+"0000") },
		"a foreign folder": func(dir string) error {
			return os.Rename(dir, filepath.Join(filepath.Dir(dir), "backup of monday"))
		},
		"a file":           func(dir string) error { return errors.Join(os.RemoveAll(dir), writeFile(dir, "x")) },
		"a link out of it": func(dir string) error { return errors.Join(os.RemoveAll(dir), os.Symlink("/etc", dir)) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, PoolConfig{Name: "image", Type: "image"})
			v := f.create("image", "one")
			s := f.snapshot("one", v.Handle)
			g, err := f.CreateGroup(t.Context(), backends.GroupSpec{Name: "one", Volumes: []string{v.Handle}})
			must(t, err)
			p := f.in("image")
			f.shut()
			for folder, handle := range map[string]string{volumesFolder: v.Handle, snapshotsFolder: s.Handle,
				groupsFolder: g.Handle} {
				must(t, spoil(filepath.Join(p.folder(folder), handle)))
			}
			f.open()
			aside, err := os.ReadDir(p.folder(quarantineFolder))
			must(t, err)
			if len(aside) != 3 || strings.Count(f.log.String(), "was set aside") != 3 {
				t.Errorf("set aside are %v, want three, and the log is\n%s", aside, f.log)
			}
			f.promised(0)
			for _, err := range []error{
				second(f.Find(t.Context(), backends.Spec{Name: "one"})),
				second(f.FindSnapshot(t.Context(), backends.SnapshotSpec{Name: "one"})), second(f.FindGroup(t.Context(), "one")),
			} {
				hasKind(t, "finding it", err, backends.NotFound)
			}
			f.create("image", "one")
			if _, err := os.Stat("/etc/passwd"); err != nil {
				t.Error(err)
			}
		})
	}
}

// damages returns ways to damage the record of a volume, a snapshot or a group.
func damages() map[string]func(record string) error {
	return map[string]func(record string) error{
		"empty":    func(record string) error { return os.Truncate(record, 0) },
		"half":     func(record string) error { return os.Truncate(record, 40) },
		"zeroed":   func(record string) error { return writeFile(record, strings.Repeat("\x00", 300)) },
		"a folder": func(record string) error { return errors.Join(os.Remove(record), os.Mkdir(record, 0o700)) },
	}
}

// An item with a damaged record keeps its place, its name and its handle, and every call for it fails.
func TestDamagedRecordsKeepTheirPlace(t *testing.T) {
	for name, spoil := range damages() {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			v := f.create("directory", "one")
			i := f.create("image", "two")
			s := f.snapshot("one", i.Handle)
			g, err := f.CreateGroup(t.Context(), backends.GroupSpec{Name: "one", Volumes: []string{i.Handle}})
			must(t, err)
			records := []string{
				filepath.Join(f.dir(v.Handle), recordFile),
				filepath.Join(f.in("image").entry(snapshotsFolder, s.Handle), recordFile),
				filepath.Join(f.in("image").entry(groupsFolder, g.Handle), recordFile),
			}
			dirs := []string{filepath.Dir(records[0]), filepath.Dir(records[1]), filepath.Dir(records[2])}
			f.shut()
			kept := make([][]byte, len(records))
			for n, record := range records {
				kept[n], err = os.ReadFile(record)
				must(t, errors.Join(err, spoil(record)))
			}
			f.open()
			f.isAway(v.Handle, "damaged", "move the folder out of the pool")
			f.copiesAreAway("one", "one")
			for _, p := range []string{"directory", "image"} {
				if aside, err := os.ReadDir(f.in(p).folder(quarantineFolder)); err != nil || len(aside) != 0 {
					t.Errorf("set aside are %v, %v", aside, err)
				}
			}
			f.mend()
			f.isAway(v.Handle, "damaged")

			for n, record := range records[:2] {
				must(t, errors.Join(os.RemoveAll(record), os.WriteFile(record, kept[n], 0o600)))
			}
			must(t, os.RemoveAll(dirs[2]))
			f.mend()
			must(t, second(f.Get(t.Context(), v.Handle)))
			must(t, second(f.GetSnapshot(t.Context(), s.Handle)))
			hasKind(t, "GetGroup", second(f.GetGroup(t.Context(), g.Handle)), backends.NotFound)
			must(t, f.Delete(t.Context(), v.Handle))
		})
	}
}

func TestRecordsOfANewerVersion(t *testing.T) {
	for _, folder := range []string{volumesFolder, snapshotsFolder, groupsFolder} {
		f := newFixture(t)
		p := f.in("image")
		f.shut()
		dir := filepath.Join(p.folder(folder), "whatever")
		must(t, os.Mkdir(dir, 0o700))
		must(t, writeFile(filepath.Join(dir, recordFile), `{"version":2}`))
		f.open()
		f.holdsOnly(folder + "/whatever")
		if issues, err := f.Inspect(t.Context()); err != nil || len(issues) != 1 ||
			!strings.Contains(issues[0].Message, "newer version") {
			t.Errorf("the issues are %+v, %v", issues, err)
		}
	}
}

func TestOneNameInTwoPools(t *testing.T) {
	f := newFixture(t)
	v := f.create("image", "one")
	dir, p := f.dir(v.Handle), f.in("directory")
	f.shut()
	other := filepath.Join(p.folder(volumesFolder), v.Handle)
	must(t, os.Mkdir(other, 0o700))
	record := volumeRecord{Version: 1, Handle: v.Handle, Name: "one", Type: directory, SizeBytes: 1, Allocation: sparse,
		OnDelete: deleteData}
	data, err := encode(record)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(other, recordFile), data, 0o600))
	f.open()
	// The orchestrator's handle is ambiguous.
	f.isAway(v.Handle, "same name", dir[:1])
	for _, path := range []string{dir, other} {
		if _, err := os.Stat(path); err != nil {
			t.Errorf("it was touched: %v", err)
		}
	}
	f.shut()
	must(t, os.Rename(other, filepath.Join(t.TempDir(), "elsewhere")))
	f.open()
	if got, err := f.Find(t.Context(), backends.Spec{Name: "one"}); err != nil || got.CapacityBytes != 4<<20 {
		t.Errorf("got %+v, %v; want the one that is left", got, err)
	}
}

func TestWhatAppearsBehindTheBack(t *testing.T) {
	f := newFixture(t)
	handle := handleOf(volumePrefix, "one")
	foreign := filepath.Join(f.in("image").folder(volumesFolder), handle)
	must(t, os.Mkdir(foreign, 0o700))
	_, err := f.Create(t.Context(), specIn("image", "one"))
	hasKind(t, "Create over what is there", err, backends.Unavailable, foreign)
	f.holdsOnly("volumes/" + handle)
	f.promised(0)
	hasKind(t, "Delete", f.Delete(t.Context(), handle), backends.Unusable, foreign)
	f.mend() // It is empty.
	hasKind(t, "Delete", f.Delete(t.Context(), handle), backends.NotFound)
	f.create("image", "one")
}

// An entry that appears in the place of a volume may be that volume, created by a call whose answer was lost. It is not
// reported as gone, and can be used once it was checked.
func TestVolumeThatAppears(t *testing.T) {
	f := newFixture(t)
	v := f.create("image", "one")
	away := filepath.Join(t.TempDir(), "away")
	must(t, os.Rename(f.dir(v.Handle), away))
	must(t, f.Delete(t.Context(), v.Handle))
	place := f.in("image").entry(volumesFolder, v.Handle)
	must(t, os.Rename(away, place))
	hasKind(t, "Create", second(f.Create(t.Context(), specIn("image", "one"))), backends.Unavailable, place)
	f.isAway(v.Handle, place)
	if !f.in("image").index.has(v.Handle) {
		t.Error("the index has lost it")
	}
	f.promised(0)
	f.mend()
	f.use(v.Handle)
	f.promised(4 << 20)
	f.holdsOnly("volumes/" + v.Handle)
}

func TestOpenStopsWithItsContext(t *testing.T) {
	f := newFixture(t)
	v := f.create("image", "one")
	f.shut()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := open(ctx, f.options)
	hasKind(t, "Open", err, backends.Unavailable)
	f.open()
	f.holdsOnly("volumes/" + v.Handle)
}

func TestOpenReports(t *testing.T) {
	f := newFixture(t)
	f.create("image", "one")
	must(t, os.Mkdir(filepath.Join(f.in("image").folder(stagingFolder), "draft"), 0o700))
	f.reopen()
	log := f.log.String()
	for _, text := range []string{"pool is open", "pool=image", "volumes=1", "drafts=1", "type=directory"} {
		if !strings.Contains(log, text) {
			t.Errorf("the log lacks %q:\n%s", text, log)
		}
	}
}

// A note is a link: other files of its name are not touched.
func TestOnlyNotesAreCleared(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, string(frozenNote))
	must(t, os.WriteFile(path, nil, 0o600))
	must(t, frozenNote.clear(dir))
	if _, err := os.Lstat(path); err != nil {
		t.Error(err)
	}
}

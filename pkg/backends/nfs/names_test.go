package nfs

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/export"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// tamper changes a record, as a user with write access to the share may.
func (w *world) tamper(folder, id string, change func(r *record)) {
	w.Helper()
	path := w.path(share.HomeName, folder, id+suffix)
	data, err := os.ReadFile(path)
	w.must(err)
	var r record
	w.must(json.Unmarshal(data, &r))
	change(&r)
	data, err = r.encode()
	w.must(err)
	w.must(os.WriteFile(path, data, 0o600))
}

// forgeries returns handles that a record must not contain, made from its own and another's.
func forgeries() map[string]func(h handle, other string) string {
	all := map[string]func(h handle, other string) string{
		"no handle": func(handle, string) string { return "x" }, "nothing": func(handle, string) string { return "" },
		"another's": func(_ handle, other string) string { return other },
	}
	evil := export.Address{Server: "evil.test", Path: "/x"}
	for name, change := range map[string]func(h *handle){
		"a server of somebody else's": func(h *handle) { h.address, h.share = evil, "" },
		"a path of somebody else's":   func(h *handle) { h.address.Path, h.share = "/x", "" },
		"a name of nobody":            func(h *handle) { h.share = "nobody" },
		"a share that is another":     func(h *handle) { h.share = "two" },
		"another identity":            func(h *handle) { h.home[0]++ },
		"a snapshot's":                func(h *handle) { h.kind = snapshotKind },
		"an ID that nothing has":      func(h *handle) { h.id = strings.Repeat("0", 32) },
	} {
		all[name] = func(h handle, _ string) string {
			change(&h)
			text, err := h.encode()
			if err != nil {
				panic(err) // The parts are of a handle that could be encoded.
			}
			return text
		}
	}
	return all
}

// twoShares returns a world with two configured shares, its own and another one.
func twoShares(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	for _, dir := range []string{"evil.test/x", testServer + "/x", testServer + "/two"} {
		w.must(os.MkdirAll(filepath.Join(filepath.Dir(filepath.Dir(w.root)), dir), 0o755))
	}
	w.configured("one")
	w.config.Shares = append(w.config.Shares, ShareConfig{Name: "two", Server: testServer, Share: "/two"})
	w.reopen()
	return w
}

// TestRecordsProveTheirHandles changes only the handle in a record. The record is damaged then: a list ends, whatever
// the size of its pages, and no call is redirected.
func TestRecordsProveTheirHandles(t *testing.T) {
	for name, forge := range forgeries() {
		for _, which := range []string{"first", "last"} { // of the records on the share
			t.Run(name+" in the "+which, func(t *testing.T) {
				w := twoShares(t)
				bad, well, beside := w.make(onShare("a", "one")), w.make(onShare("b", "one")), w.make(onShare("c", "two"))
				if (idOf(t, volumeKind, bad.Handle) < idOf(t, volumeKind, well.Handle)) != (which == "first") {
					bad, well = well, bad
				}
				h, err := w.parse(volumeKind, bad.Handle)
				w.must(err)
				forged := forge(h, well.Handle)
				w.tamper(share.Volumes, h.id, func(r *record) { r.Handle = forged })
				now, where, _, ok := decodeHandle(volumeKind, forged)
				switch aboutIt := ok && now.id == h.id && now.home == h.home; {
				case !aboutIt:
					w.lists(bad.Handle, well.Handle, beside.Handle)
					w.isUnwell(bad.Handle, "RecordUnreadable")
				case strings.HasPrefix(where, "@"): // It may have been made under another configuration.
					w.lists(forged, well.Handle, beside.Handle)
					w.isUnwell(forged, "ShareUnreachable")
				default: // The share may also have that address.
					w.lists(forged, well.Handle, beside.Handle)
					w.areWell(forged, well.Handle, beside.Handle)
				}
				w.isUnusable(bad)
				for _, mounted := range w.pool.Mounted() {
					if mounted.Server != testServer || mounted.Path == "/x" {
						t.Errorf("%s was mounted", mounted)
					}
				}
			})
		}
	}
}

// TestRecordsProveOtherHandles changes the handles of other items in a record.
func TestRecordsProveOtherHandles(t *testing.T) {
	w := twoShares(t)
	v := w.make(onShare("a", "one"))
	group, err := w.CreateGroup(t.Context(), backends.GroupSpec{Name: "group", Volumes: []string{v.Handle}})
	w.must(err)
	snapshot := group.Snapshots[0].Handle
	evil := func(k kind, text string) string {
		h, _, _, ok := decodeHandle(k, text)
		if !ok {
			t.Fatalf("%q is no handle", text)
		}
		h.address = export.Address{Server: "evil.test", Path: "/x"}
		made, err := h.encode()
		w.must(err)
		return made
	}
	evilSnapshot, evilGroup := evil(snapshotKind, snapshot), evil(groupKind, group.Handle)
	getSnapshot := func() error { return second(w.GetSnapshot(t.Context(), snapshot)) }
	getGroup := func() error { return second(w.GetGroup(t.Context(), group.Handle)) }
	getVolume := func() error { return second(w.Get(t.Context(), v.Handle)) }
	snapshotAt, groupAt, volumeAt := [2]string{share.Snapshots, idOf(t, snapshotKind, snapshot)},
		[2]string{share.Groups, idOf(t, groupKind, group.Handle)}, [2]string{share.Volumes, idOf(t, volumeKind, v.Handle)}
	for name, row := range map[string]struct {
		at     [2]string
		change func(r *record)
		get    func() error
	}{
		"a snapshot's handle":           {snapshotAt, func(r *record) { r.Handle = "x" }, getSnapshot},
		"a snapshot's share":            {snapshotAt, func(r *record) { r.Handle = evilSnapshot }, getSnapshot},
		"a snapshot's volume":           {snapshotAt, func(r *record) { r.SourceVolume = "x" }, getSnapshot},
		"a snapshot of a snapshot":      {snapshotAt, func(r *record) { r.SourceVolume = snapshot }, getSnapshot},
		"a snapshot's group":            {snapshotAt, func(r *record) { r.Group.Handle = "x" }, getSnapshot},
		"the share of a snapshot's":     {snapshotAt, func(r *record) { r.Group.Handle = evilGroup }, getSnapshot},
		"a group's handle":              {groupAt, func(r *record) { r.Handle = snapshot }, getGroup},
		"a group's share":               {groupAt, func(r *record) { r.Handle = evilGroup }, getGroup},
		"a group's volume":              {groupAt, func(r *record) { r.Members[0].Volume = "x" }, getGroup},
		"what a volume was made of":     {volumeAt, func(r *record) { r.SourceSnapshot = v.Handle }, getVolume},
		"which volume was cloned there": {volumeAt, func(r *record) { r.SourceVolume = "x" }, getVolume},
	} {
		path := w.path(share.HomeName, row.at[0], row.at[1]+suffix)
		kept, err := os.ReadFile(path)
		w.must(err)
		w.must(row.get())
		w.tamper(row.at[0], row.at[1], row.change)
		w.fails(name, row.get(), backends.Unusable, "record")
		w.must(os.WriteFile(path, kept, 0o600))
	}
}

// TestHandlesOfFormerNames has volumes whose handles have another name of the share than its current one. They stay
// valid while the configuration, or the note of used shares, has that name.
func TestHandlesOfFormerNames(t *testing.T) {
	w := newWorld(t)
	byAddress := w.make(specOf("address"))
	w.configured("one")
	w.reopen()
	byName := w.make(onShare("name", "one"))
	w.configured("renamed")
	w.reopen()
	w.lists(byAddress.Handle, byName.Handle)
	w.isUnwellFor("add it again")                                             // Its handle leads nowhere until then.
	w.must(w.Delete(t.Context(), w.make(onShare("later", "renamed")).Handle)) // That is noted, and the old name kept.
	w.reopen()
	w.isUnwellFor("add it again")
	w.configured("one")
	w.data = t.TempDir()
	w.reopen()
	w.areWell(byAddress.Handle, byName.Handle)
	w.must(os.Symlink(testServer, filepath.Join(filepath.Dir(filepath.Dir(w.root)), "alias.test")))
	w.config.Shares[0].Server = "alias.test"
	w.data = t.TempDir()
	w.reopen() // Nothing says any more that both are one.
	w.areWell(byAddress.Handle, byName.Handle)
	if v, err := w.Get(t.Context(), byAddress.Handle); err != nil || v.Handle != byAddress.Handle {
		t.Errorf("by its own address: %v, %v", v, err)
	}
}

// TestHandlesOfConfiguredShares finds volumes by another name of their share than that in their handles, before the
// share of that name was ever asked for its identity.
func TestHandlesOfConfiguredShares(t *testing.T) {
	w := newWorld(t)
	w.must(os.Symlink(testServer, filepath.Join(filepath.Dir(filepath.Dir(w.root)), "alias.test")))
	w.configured("one", "two")
	w.config.Shares[1].Server = "alias.test"
	w.reopen()
	made := map[string]string{"address": w.make(specOf("address")).Handle, "name": w.make(onShare("name", "one")).Handle}
	w.data = t.TempDir()
	w.reopen()
	for name, handle := range made {
		if v, err := w.Find(t.Context(), onShare(name, "two")); err != nil || v.Handle != handle {
			t.Errorf("%s: got %v, %v; want %s", name, v, err, handle)
		}
	}
}

// areWell checks which volumes are listed, and that none is unwell.
func (w *world) areWell(handles ...string) {
	w.Helper()
	w.lists(handles...)
	if unwell, _, err := w.ListHealth(w.Context(), backends.Page{}); err != nil || len(unwell) != 0 {
		w.Errorf("unwell are %v, %v", unwell, err)
	}
}

// isUnwellFor checks that one volume is unwell, and that the message says what to do.
func (w *world) isUnwellFor(says string) {
	w.Helper()
	unwell, _, err := w.ListHealth(w.Context(), backends.Page{})
	if err != nil || len(unwell) != 1 || !strings.Contains(unwell[0].Issues[0].Message, says) ||
		!strings.Contains(unwell[0].Issues[0].Message, "configuration") {
		w.Errorf("what is unwell is %+v, %v; want one that names %s", unwell, err, says)
	}
}

package nfs

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// damages returns ways in which a record exists but is not valid.
func damages() map[string]func(record string) error {
	return map[string]func(record string) error{
		"empty":  func(record string) error { return os.Truncate(record, 0) },
		"half":   func(record string) error { return os.Truncate(record, 40) },
		"zeroed": func(record string) error { return os.WriteFile(record, make([]byte, 300), 0o600) },
		"folder": func(record string) error { return errors.Join(os.Remove(record), os.Mkdir(record, 0o700)) },
		"loop": func(record string) error {
			return errors.Join(os.Remove(record), os.Symlink(filepath.Base(record), record))
		},
		"another handle": func(record string) error {
			data, err := os.ReadFile(record)
			changed := regexp.MustCompile(`"handle": "n[vsg]1[^"]*"`).ReplaceAll(data, []byte(`"handle": "x"`))
			return errors.Join(err, os.WriteFile(record, changed, 0o600))
		},
		"newer": func(record string) error {
			data, err := os.ReadFile(record)
			return errors.Join(err, os.WriteFile(record,
				[]byte(strings.Replace(string(data), `"version": 1`, `"version": 99`, 1)), 0o600))
		},
	}
}

// One damaged record makes only its own volume unusable. The volume stays in the list, keeps its name and data, and all
// others are listed as before.
func TestDamagedRecordStopsItselfOnly(t *testing.T) {
	for name, spoil := range damages() {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.configured("one")
			w.reopen()
			v, well := w.make(onShare("bad", "one")), w.make(onShare("well", "one"))
			w.write("text", w.recordOf(v).SubDir, "file")
			record := w.path(share.Volumes, w.recordOf(v).ID+suffix)
			record = strings.Replace(record, w.root, w.path(share.HomeName), 1)
			kept, err := os.ReadFile(record)
			w.must(err)
			w.must(spoil(record))
			for range 2 {
				w.lists(v.Handle, well.Handle)
				w.isUnwell(v.Handle, "RecordUnreadable")
				w.isUnusable(v)
				w.reopen()
			}
			w.must(errors.Join(os.RemoveAll(record), os.WriteFile(record, kept, 0o600)))
			w.lists(v.Handle, well.Handle)
			if text, err := os.ReadFile(w.path(w.recordOf(v).SubDir, "file")); string(text) != "text" {
				t.Errorf("its file has %q (%v)", text, err)
			}
			w.must(w.Delete(t.Context(), v.Handle))
		})
	}
}

// lists checks which volumes are listed, in pages of any size.
func (w *world) lists(handles ...string) {
	w.Helper()
	for _, limit := range []int{0, 1, 2} {
		have, given := map[string]bool{}, map[string]bool{}
		for token := ""; ; {
			page, next, err := w.List(w.Context(), backends.Page{Token: token, Limit: limit})
			if err != nil {
				w.Errorf("in pages of %d: %v", limit, err)
				return
			}
			for _, v := range page {
				have[v.Handle] = true
			}
			if given[next] {
				w.Errorf("in pages of %d the token %q is given again", limit, next)
				return
			}
			if token = next; token == "" {
				break
			}
			given[token] = true
		}
		for _, handle := range handles {
			if !have[handle] || len(have) != len(handles) {
				w.Errorf("in pages of %d it lists %v, want %q", limit, have, handles)
				return
			}
		}
	}
}

// isUnwell checks that one volume is unwell for the reason, and no other.
func (w *world) isUnwell(handle, reason string) {
	w.Helper()
	unwell, _, err := w.ListHealth(w.Context(), backends.Page{})
	if err != nil || len(unwell) != 1 || unwell[0].Handle != handle || unwell[0].Issues[0].Reason != reason {
		w.Errorf("what is unwell is %+v, %v; want %s for %s", unwell, err, handle, reason)
	}
}

// isUnusable checks that no call on a volume succeeds, or says that it does not exist.
func (w *world) isUnusable(v *backends.Volume) {
	w.Helper()
	ctx, spec := w.Context(), onShare(v.Name, "one")
	for what, ask := range map[string]func() error{
		"Create": func() error { return second(w.Create(ctx, spec)) },
		"Find":   func() error { return second(w.Find(ctx, spec)) },
		"Get":    func() error { return second(w.Get(ctx, v.Handle)) },
		"Delete": func() error { return w.Delete(ctx, v.Handle) },
		"Expand": func() error {
			return second(w.Expand(ctx, v.Handle, backends.CapacityRange{RequiredBytes: 4 << 20}))
		},
		"CreateSnapshot": func() error {
			return second(w.CreateSnapshot(ctx, backends.SnapshotSpec{Name: "s", Volume: v.Handle}))
		},
		"Source": func() error { return second(w.node.Source(ctx, backends.Attachment{Handle: v.Handle})) },
	} {
		w.fails(what, ask(), backends.Unusable, "record")
	}
}

// A damaged record of a snapshot or of a group does not prevent others from being listed, and its item is not gone.
func TestDamagedCopiesStopThemselvesOnly(t *testing.T) {
	for name, spoil := range damages() {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.configured("one")
			w.reopen()
			v := w.make(onShare("one", "one"))
			bad, err := w.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "bad", Volume: v.Handle})
			w.must(err)
			well, err := w.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "well", Volume: v.Handle})
			w.must(err)
			group, err := w.CreateGroup(t.Context(), backends.GroupSpec{Name: "group", Volumes: []string{v.Handle}})
			w.must(err)
			w.must(spoil(w.path(share.HomeName, share.Snapshots, idOf(t, snapshotKind, bad.Handle)+suffix)))
			w.must(spoil(w.path(share.HomeName, share.Groups, idOf(t, groupKind, group.Handle)+suffix)))
			w.reopen()
			found, _, err := w.ListSnapshots(t.Context(), "", backends.Page{})
			have := map[string]bool{}
			for _, s := range found {
				have[s.Handle] = true
				if s.Handle == bad.Handle && (s.Ready || s.Volume != v.Handle) {
					t.Errorf("of the damaged one it lists %+v, want that it is of %s and not ready", s, v.Handle)
				}
			}
			if known := name == "another handle"; have[bad.Handle] != known {
				t.Errorf("it lists the damaged one: %t, want %t", have[bad.Handle], known)
			}
			if err != nil || !have[well.Handle] || !have[group.Snapshots[0].Handle] {
				t.Errorf("it lists %v, %v; want %s and the group's %s in it", have, err, well.Handle, group.Snapshots[0].Handle)
			}
			w.fails("GetSnapshot", second(w.GetSnapshot(t.Context(), bad.Handle)), backends.Unusable, "record")
			w.fails("DeleteSnapshot", w.DeleteSnapshot(t.Context(), bad.Handle), backends.Unusable, "record")
			w.fails("GetGroup", second(w.GetGroup(t.Context(), group.Handle)), backends.Unusable, "record")
			w.fails("FindGroup", second(w.FindGroup(t.Context(), "group")), backends.Unusable, "record")
			w.fails("DeleteGroup", w.DeleteGroup(t.Context(), group.Handle), backends.Unusable, "record")
			w.fails("GetSnapshot of the group", second(w.GetSnapshot(t.Context(), group.Snapshots[0].Handle)), backends.Unusable,
				"record")
		})
	}
}

func idOf(t *testing.T, k kind, text string) string {
	t.Helper()
	h, _, _, ok := decodeHandle(k, text)
	if !ok {
		t.Fatalf("%q is no handle", text)
	}
	return h.id
}

// A share that has lost the driver's directory is away, even for a process that has just started. It is not listed as
// empty, and nothing is created on the export in its place.
func TestShareWithoutItsHomeIsAway(t *testing.T) {
	for _, byClass := range []bool{false, true} {
		w := newWorld(t)
		spec := specOf("one")
		if !byClass {
			w.configured("one")
			w.reopen()
			spec = onShare("one", "one")
		}
		v := w.make(spec)
		w.must(os.Rename(w.root, w.root+".away"))
		w.must(os.Mkdir(w.root, 0o755))
		w.reopen()
		_, _, err := w.List(t.Context(), backends.Page{})
		w.fails("a list", err, backends.Unavailable, "not known")
		_, err = w.Create(t.Context(), specOf("two"))
		w.fails("making another", err, backends.Unavailable, "export something else")
		if left, err := os.ReadDir(w.root); err != nil || len(left) != 0 {
			t.Errorf("on what is shown in its place there is %v, %v", left, err)
		}
		w.shut()
		w.must(errors.Join(os.Remove(w.root), os.Rename(w.root+".away", w.root)))
		w.open()
		w.lists(v.Handle)
	}
}

// A file among the records whose name is no ID is no record: it is not listed, and does not prevent records from being
// listed.
func TestStrayFileStopsNoList(t *testing.T) {
	w := newWorld(t)
	w.configured("one")
	w.reopen()
	v := w.make(onShare("one", "one"))
	for _, name := range []string{"x", "", v.Name, strings.Repeat("0", 33), strings.Repeat("A", 32)} {
		w.must(os.WriteFile(w.path(share.At(share.Volumes, name+suffix)), []byte("{"), 0o600))
	}
	w.lists(v.Handle)
}

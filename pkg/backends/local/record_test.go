package local

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/base64url"
	"github.com/stowage-csi/stowage/pkg/pagetoken"
)

func goodVolumeRecord() *volumeRecord {
	return &volumeRecord{
		Version: 1, Handle: handleOf(volumePrefix, "pvc"), Name: "pvc", Type: image, SizeBytes: 4096,
		CreatedAt: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), Allocation: full, OnDelete: retainData, ReadAheadKiB: 128,
		Fingerprint: "f", SourceSnapshot: handleOf(snapshotPrefix, "s"),
	}
}

func goodGroupRecord() *groupRecord {
	handle := handleOf(groupPrefix, "group")
	r := &groupRecord{Version: 1, Handle: handle, Name: "group", CreatedAt: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)}
	for i := range 2 {
		r.Members = append(r.Members, snapshotRecord{
			Version: 1, Handle: memberHandle(handle, i), Name: "group/0", Type: image, SizeBytes: 4096,
			Volume: handleOf(volumePrefix, "pvc"),
		})
	}
	return r
}

func TestRecordsSurvive(t *testing.T) {
	volume := goodVolumeRecord()
	data, err := encode(volume)
	must(t, err)
	back := new(volumeRecord)
	must(t, decode(data, back))
	must(t, back.check(volume.Handle, image))
	if !reflect.DeepEqual(back, volume) {
		t.Errorf("the record is %+v, was %+v", back, volume)
	}
	group := goodGroupRecord()
	data, err = encode(group)
	must(t, err)
	other := new(groupRecord)
	must(t, decode(data, other))
	must(t, other.check(group.Handle, image))
	if !reflect.DeepEqual(other, group) {
		t.Errorf("the record is %+v, was %+v", other, group)
	}
}

func TestDecodeRefuses(t *testing.T) {
	for _, text := range []string{
		"", "null null", "{", "[]", "{}{}", `{"version":1,"color":"red"}`, `{"version":"1"}`, `{"version":1} x`,
		"\x00\x00\x00",
	} {
		if err := decode([]byte(text), new(volumeRecord)); err == nil {
			t.Errorf("the record %q was accepted", text)
		}
	}
	if err := decode([]byte(`{"version":2,"color":"red"}`), new(volumeRecord)); !errors.Is(err, errNewer) {
		t.Errorf("a newer record: got %v, want %v", err, errNewer)
	}
}

func TestVolumeRecordCheck(t *testing.T) {
	for name, change := range map[string]func(*volumeRecord){
		"version":              func(r *volumeRecord) { r.Version = 0 },
		"handle":               func(r *volumeRecord) { r.Handle = handleOf(volumePrefix, "other") },
		"name":                 func(r *volumeRecord) { r.Name = "other" },
		"type":                 func(r *volumeRecord) { r.Type = directory },
		"no size":              func(r *volumeRecord) { r.SizeBytes = 0 },
		"negative size":        func(r *volumeRecord) { r.SizeBytes = -4096 },
		"expanding from more":  func(r *volumeRecord) { r.ExpandingFromBytes = 8192 },
		"expanding from below": func(r *volumeRecord) { r.ExpandingFromBytes = -1 },
		"allocation":           func(r *volumeRecord) { r.Allocation = "thick" },
		"onDelete":             func(r *volumeRecord) { r.OnDelete = "" },
		"read-ahead":           func(r *volumeRecord) { r.ReadAheadKiB = -1 },
	} {
		r := goodVolumeRecord()
		change(r)
		if err := r.check(handleOf(volumePrefix, "pvc"), image); err == nil {
			t.Errorf("a record with a wrong %s was accepted", name)
		}
	}
}

func TestGroupRecordCheck(t *testing.T) {
	for name, change := range map[string]func(*groupRecord){
		"handle":          func(r *groupRecord) { r.Handle = handleOf(groupPrefix, "other") },
		"no members":      func(r *groupRecord) { r.Members = nil },
		"member's handle": func(r *groupRecord) { r.Members[1].Handle = r.Members[0].Handle },
		"member's volume": func(r *groupRecord) { r.Members[1].Volume = "../../etc" },
		"member's size":   func(r *groupRecord) { r.Members[1].SizeBytes = 0 },
		"member's type":   func(r *groupRecord) { r.Members[1].Type = directory },
	} {
		r := goodGroupRecord()
		change(r)
		if err := r.check(handleOf(groupPrefix, "group"), image); err == nil {
			t.Errorf("a record with a wrong %s was accepted", name)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, record := range []any{goodVolumeRecord(), goodGroupRecord()} {
		data, err := encode(record)
		must(f, err)
		f.Add(data)
	}
	f.Add([]byte(`{"version":1,"handle":"../../etc/passwd"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		volume := new(volumeRecord)
		if decode(data, volume) == nil && volume.check(volume.Handle, image) == nil {
			again, err := encode(volume)
			must(t, err)
			back := new(volumeRecord)
			must(t, decode(again, back))
			if !isHandle(volumePrefix, back.Handle) || back.size() <= 0 || back.Handle != volume.Handle {
				t.Errorf("a record that is wrong was accepted: %q", data)
			}
		}
		group := new(groupRecord)
		if decode(data, group) == nil && group.check(group.Handle, image) == nil && !isHandle(groupPrefix, group.Handle) {
			t.Errorf("a record that is wrong was accepted: %q", data)
		}
	})
}

func TestTokens(t *testing.T) {
	handle := handleOf(volumePrefix, "pvc")
	if after, err := startOf(t.Context(), volumePrefix, backends.Page{Token: pagetoken.After(handle)}); err != nil ||
		after != handle {
		t.Errorf("got %q, %v; want %q", after, err, handle)
	}
	for _, token := range []string{
		"x", "!", pagetoken.After("lv-short"), pagetoken.After("../../etc"), pagetoken.After(strings.ToUpper(handle)),
		pagetoken.After(handleOf(snapshotPrefix, "s")),
		base64url.Encode([]byte("2:" + handle)), pagetoken.After(handle) + "A",
	} {
		_, err := startOf(t.Context(), volumePrefix, backends.Page{Token: token})
		hasKind(t, token, err, backends.Busy)
	}
}

func FuzzHandle(f *testing.F) {
	for _, name := range []string{"", "pvc-1", "../../etc/passwd", "a\x00b", strings.Repeat("é", 64), "\xff"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		for _, prefix := range []string{volumePrefix, snapshotPrefix, groupPrefix} {
			handle := handleOf(prefix, name)
			if !isHandle(prefix, handle) || strings.ContainsAny(handle, "/.\x00") || len(handle) > 128 {
				t.Errorf("the name %q has the handle %q", name, handle)
			}
		}
		if isHandle(volumePrefix, name) && strings.ContainsAny(name, "/.\x00") {
			t.Errorf("%q is taken for a handle", name)
		}
		if memberHandle(name, 1) == handleOf(snapshotPrefix, name+"/1") {
			t.Errorf("the group %q has a member whose handle is that of a snapshot", name)
		}
	})
}

// FuzzForeignHandle passes to every method a handle that it has not returned.
func FuzzForeignHandle(f *testing.F) {
	x := newFixture(f)
	kept := x.create("directory", "kept")
	must(f, writeFile(x.data(kept.Handle)+"/file", "text"))
	before := strings.Join(everything(f, x.dataDir), "\n")
	for _, handle := range []string{"", "..", "../volumes/" + kept.Handle, kept.Handle + "/", "/etc", "\x00",
		handleOf(volumePrefix, "x"), "a,b"} {
		f.Add(handle)
	}
	f.Fuzz(func(t *testing.T, handle string) {
		if handle == kept.Handle {
			return
		}
		_, err := x.Get(t.Context(), handle)
		hasKind(t, "Get", err, backends.NotFound)
		hasKind(t, "Delete", x.Delete(t.Context(), handle), backends.NotFound)
		hasKind(t, "DeleteSnapshot", x.DeleteSnapshot(t.Context(), handle), backends.NotFound)
		hasKind(t, "DeleteGroup", x.DeleteGroup(t.Context(), handle), backends.NotFound)
		_, err = x.Source(t.Context(), backends.Attachment{Handle: handle})
		hasKind(t, "Source", err, backends.NotFound)
		must(t, x.Release(t.Context(), handle))
		if after := strings.Join(everything(t, x.dataDir), "\n"); after != before {
			t.Errorf("the handle %q changed the disk from\n%s\nto\n%s", handle, before, after)
		}
	})
}

func TestUnusualValues(t *testing.T) {
	f := newFixture(t)
	for name, spec := range map[string]backends.Spec{
		"parameters of another type": {Name: "a", Parameters: 1},
		"mutable of another type":    {Name: "a", Mutable: "x"},
		"no name":                    {},
		"a name that is not UTF-8":   {Name: "\xff"},
		"an unknown pool":            {Name: "a", Parameters: &Parameters{Pool: "none"}},
		"full in a directory pool":   {Name: "a", Parameters: &Parameters{Pool: "directory", Allocation: full}},
		"an allocation":              {Name: "a", Parameters: &Parameters{Allocation: "thick"}},
		"read-ahead in a directory": {Name: "a", Parameters: &Parameters{Pool: "directory", ReadAheadKiB: new(int)},
			Mutable: &Mutable{ReadAheadKiB: pointer(5)}},
		"block in a directory": {Name: "a", Parameters: &Parameters{Pool: "directory"},
			Access: backends.Access{Types: []backends.AccessType{backends.Block}}},
		"many nodes": {Name: "a", Access: backends.Access{Modes: []backends.AccessMode{backends.MultiNodeMultiWriter}}},
	} {
		_, err := f.Create(t.Context(), spec)
		hasKind(t, name, err, backends.Invalid)
	}
	v := f.create("image", "volume")
	hasKind(t, "Modify", f.Modify(t.Context(), v.Handle, 1), backends.Invalid)
	_, err := f.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "s", Volume: v.Handle, Parameters: 1})
	hasKind(t, "CreateSnapshot", err, backends.Invalid)
	_, err = f.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "\xff", Volume: v.Handle})
	hasKind(t, "CreateSnapshot", err, backends.Invalid)
	_, err = f.CreateGroup(t.Context(), backends.GroupSpec{Name: "\xff", Volumes: []string{v.Handle}})
	hasKind(t, "CreateGroup", err, backends.Invalid)
	f.holdsOnly("volumes/" + v.Handle)
	var plain map[string]any
	data, err := encode(f.volumesRecord(v.Handle))
	must(t, err)
	must(t, json.Unmarshal(data, &plain))
	if plain["name"] != "volume" {
		t.Errorf("the record is %v", plain)
	}
}

func (f *fixture) volumesRecord(handle string) *volumeRecord {
	f.Helper()
	v, err := f.stock.volumes.get(handle)
	must(f, err)
	return v.record.Load()
}

func pointer[T any](v T) *T { return &v }

package ebs_test

import (
	"testing"
	"testing/synctest"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/tests/cloud/region"
)

// TestScatteredPagesAreWhole makes EC2 begin each enumeration with an empty page and a token, and answer in random
// order. The first process creates volumes and a snapshot, and the next one finds them.
func TestScatteredPagesAreWhole(t *testing.T) { synctest.Test(t, scatteredPagesAreWhole) }

func scatteredPagesAreWhole(t *testing.T) {
	config := region.Quick()
	config.Scattered = true
	w := region.New(t, config, 0)
	first := open(t, w, nil)
	made := map[string]string{}
	for _, name := range []string{"a", "b", "c", "d"} {
		made[name] = first.make(name).Handle
	}
	spec := backends.SnapshotSpec{Name: "s", Volume: made["a"]}
	s, err := first.f.Snapshot.CreateSnapshot(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	d := open(t, w, nil)
	for name, handle := range made {
		if v, err := d.Find(t.Context(), region.Spec(name)); err != nil || v.Handle != handle {
			t.Errorf("%s: found %+v with %v, want %s", name, v, err, handle)
		}
		if v, err := d.Get(t.Context(), handle); err != nil || v.Name != name {
			t.Errorf("%s: got %+v with %v, want %s", handle, v, err, name)
		}
	}
	if list, _, err := d.f.List.List(t.Context(), backends.Page{}); err != nil || len(list) != len(made) {
		t.Errorf("listed are %+v with %v, want %v", list, err, made)
	}
	if found, err := d.f.Snapshot.FindSnapshot(t.Context(), spec); err != nil || found.Handle != s.Handle {
		t.Errorf("found is the snapshot %+v with %v, want %s", found, err, s.Handle)
	}
	list, _, err := d.f.Snapshots.ListSnapshots(t.Context(), "", backends.Page{})
	if err != nil || len(list) != 1 {
		t.Errorf("listed are the snapshots %+v with %v, want %s", list, err, s.Handle)
	}
}

package ebs_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/tests/cloud/region"
)

// past is older than all that the tests do.
const past = 24 * time.Hour

// TestOneOldReadProvesNothing has reads show how things were before what was done last.
func TestOneOldReadProvesNothing(t *testing.T) {
	for name, check := range map[string]func(t *testing.T, w *region.Region, d driver, v *backends.Volume){
		"a volume that is not shown is deleted": func(t *testing.T, w *region.Region, d driver, v *backends.Volume) {
			if err := d.Delete(t.Context(), v.Handle); err != nil || len(w.Server.Volumes()) != 0 {
				<-time.After(time.Second) // It may be on its way out.
				if left := w.Server.Volumes(); err != nil || len(left) != 0 {
					t.Errorf("deleted with %v, and there is %+v", err, left)
				}
			}
		},
		"one that is not shown to be attached is detached": func(t *testing.T, w *region.Region, d driver, v *backends.Volume) {
			w.Server.SetLag(0)
			if _, err := d.f.Attach.Attach(t.Context(), region.Request(v.Handle, region.NodeA)); err != nil {
				t.Fatal(err)
			}
			w.Server.SetLag(past)
			if err := d.f.Attach.Detach(t.Context(), v.Handle, region.NodeA); err != nil || len(w.Server.Volumes()[0].Instances) != 0 {
				t.Errorf("detached with %v, and it is %+v", err, w.Server.Volumes()[0])
			}
		},
		"a snapshot of one that is not shown": func(t *testing.T, w *region.Region, d driver, v *backends.Volume) {
			s := backends.SnapshotSpec{Name: "snapshot", Volume: v.Handle}
			if _, err := d.f.Snapshot.CreateSnapshot(within(t, time.Second), s); err == nil || backends.Is(err, backends.NotFound) || len(w.Server.Snapshots()) != 1 {
				t.Errorf("taken with %v, and there are %v", err, w.Server.Snapshots())
			}
			<-time.After(time.Minute) // What goes on has ended.
		},
		"a snapshot that is not shown is not taken twice": func(t *testing.T, w *region.Region, d driver, v *backends.Volume) {
			w.Server.SetLag(0)
			s := backends.SnapshotSpec{Name: "snapshot", Volume: v.Handle}
			made, err := d.f.Snapshot.CreateSnapshot(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			w.Server.SetLag(past)
			if _, err := d.f.Snapshot.CreateSnapshot(within(t, time.Second), s); !backends.Is(err, backends.Exists) || len(w.Server.Snapshots()) != 1 {
				t.Errorf("taken again with %v, and there are %v", err, w.Server.Snapshots())
			}
			if err := d.f.Snapshot.DeleteSnapshot(t.Context(), made.Handle); err != nil || len(w.Server.Snapshots()) != 0 {
				t.Errorf("deleted with %v, and there are %v", err, w.Server.Snapshots())
			}
		},
		"what was deleted is not shown": func(t *testing.T, w *region.Region, d driver, v *backends.Volume) {
			w.Server.SetLag(0)
			made, err := d.f.Snapshot.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "snapshot", Volume: v.Handle})
			if err != nil {
				t.Fatal(err)
			}
			<-time.After(time.Second)
			if err := d.f.Snapshot.DeleteSnapshot(t.Context(), made.Handle); err != nil {
				t.Fatal(err)
			}
			if err := d.Delete(t.Context(), v.Handle); err != nil {
				t.Fatal(err)
			}
			w.Server.SetLag(time.Second)
			if list, _, err := d.f.List.List(t.Context(), backends.Page{}); err != nil || len(list) != 0 {
				t.Errorf("listed are %+v, %v", list, err)
			}
			if list, _, err := d.f.Snapshots.ListSnapshots(t.Context(), "", backends.Page{}); err != nil || len(list) != 0 {
				t.Errorf("listed are %+v, %v", list, err)
			}
			if _, err := d.Get(t.Context(), v.Handle); !backends.Is(err, backends.NotFound) {
				t.Errorf("got with %v, want NotFound", err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := region.New(t, region.Quick(), 0)
				d := open(t, w, nil)
				v := d.make("one")
				w.Server.SetLag(past)
				check(t, w, d, v)
			})
		})
	}
}

// TestDeletionIsOneRequest deletes a volume of which the process knows whose it is.
func TestDeletionIsOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := region.New(t, region.Quick(), 0)
		d := open(t, w, nil)
		v := d.make("one")
		before := w.Server.Calls()
		if err := d.Delete(t.Context(), v.Handle); err != nil {
			t.Fatal(err)
		}
		for action, n := range w.Server.Calls() {
			if want := before[action]; action == "DeleteVolume" && n != 1 || action != "DeleteVolume" && n != want {
				t.Errorf("%d requests for %s, before it %d", n, action, want)
			}
		}
	})
}

// TestAnOldReadRevivesNothing has reads show a volume to a new process that the one before it has deleted.
func TestAnOldReadRevivesNothing(t *testing.T) {
	const late = 5 * time.Second
	for _, shown := range []time.Duration{late, 0} { // Not shown, it is still what its token has made.
		synctest.Test(t, func(t *testing.T) {
			w := region.New(t, region.Quick(), 0)
			d := open(t, w, nil)
			gone := d.make("v")
			<-time.After(time.Minute)
			if err := d.Delete(t.Context(), gone.Handle); err != nil {
				t.Fatal(err)
			}
			<-time.After(late / 2)
			next := open(t, w, nil)
			w.Server.SetLag(shown)
			if _, err := next.Find(t.Context(), region.Spec("v")); shown > 0 && !backends.Is(err, backends.NotFound) {
				t.Errorf("found: %v", err)
			}
			v, err := next.Create(within(t, time.Minute), region.Spec("v"))
			if err != nil || v.Handle == gone.Handle || len(w.Server.Volumes()) != 1 {
				t.Errorf("made %+v with %v, and there are %+v", v, err, w.Server.Volumes())
			}
		})
	}
}

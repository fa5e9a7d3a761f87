package ebs_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/ebs"
	"github.com/stowage-csi/stowage/tests/cloud/faults"
	"github.com/stowage-csi/stowage/tests/cloud/region"
)

// TestSnapshotTwinsGoTogether makes a request for a snapshot arrive twice.
func TestSnapshotTwinsGoTogether(t *testing.T) { synctest.Test(t, snapshotTwinsGoTogether) }

func snapshotTwinsGoTogether(t *testing.T) {
	w := region.New(t, region.Quick(), 0)
	d := open(t, w, nil)
	v := d.make("one")
	w.Proxy.Script(faults.Rule{Action: "CreateSnapshot", Times: 1, Kind: faults.Duplicate})
	twin, err := d.f.Snapshot.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "twin", Volume: v.Handle})
	if err != nil || len(w.Server.Snapshots()) != 2 {
		t.Fatalf("got %v and %d snapshots; want 2", err, len(w.Server.Snapshots()))
	}
	other, err := d.f.Snapshot.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "other", Volume: v.Handle})
	if err != nil {
		t.Fatal(err)
	}
	if found, err := open(t, w, nil).f.Snapshot.FindSnapshot(t.Context(),
		backends.SnapshotSpec{Name: "twin"}); err != nil || found.Handle != twin.Handle {
		t.Errorf("found again is %+v, %v; want %s", found, err, twin.Handle)
	}
	var listed []string
	for page := (backends.Page{Limit: 1}); len(listed) == 0 || page.Token != ""; {
		var found []backends.Snapshot
		if found, page.Token, err = d.f.Snapshots.ListSnapshots(t.Context(), "", page); err != nil {
			t.Fatal(err)
		}
		for _, s := range found {
			listed = append(listed, s.Handle)
		}
	}
	if slices.Sort(listed); !slices.Equal(listed, slices.Sorted(slices.Values([]string{twin.Handle, other.Handle}))) {
		t.Errorf("listed are %v, want %s and %s", listed, twin.Handle, other.Handle)
	}
	if err := d.f.Snapshot.DeleteSnapshot(t.Context(), twin.Handle); err != nil {
		t.Fatal(err)
	}
	if left := w.Server.Snapshots(); len(left) != 1 || left[other.Handle] == nil {
		t.Errorf("there are %v, want only %s", left, other.Handle)
	}
}

// TestNameTakenForAnotherVolume makes another process take a snapshot of the name, of another volume, right before the
// request is sent. The caller waits for the end, or leaves before reads show the snapshots.
func TestNameTakenForAnotherVolume(t *testing.T) {
	for name, row := range map[string]struct {
		patience time.Duration
		want     backends.Kind
	}{
		"the caller waits":  {time.Minute, backends.Exists},
		"the caller leaves": {3 * time.Second, backends.Busy},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { nameTakenForAnotherVolume(t, row.patience, row.want) })
		})
	}
}

func nameTakenForAnotherVolume(t *testing.T, patience time.Duration, want backends.Kind) {
	w := region.New(t, region.Quick(), 0)
	rival := open(t, w, nil)
	spec := backends.SnapshotSpec{Name: "s", Volume: rival.make("one").Handle}
	other := backends.SnapshotSpec{Name: "s", Volume: rival.make("another").Handle}
	<-time.After(time.Minute)
	var first backends.Snapshot
	d := open(t, w, func(c *ebs.Config) {
		c.AWS.HTTPClient = before{c.AWS.HTTPClient, "CreateSnapshot", func() {
			made, err := rival.f.Snapshot.CreateSnapshot(t.Context(), other)
			if err != nil {
				t.Error(err)
				return
			}
			first = *made
			<-time.After(time.Second) // Its time differs.
			w.Server.SetLag(5 * time.Second)
		}}
	})
	if made, err := d.f.Snapshot.CreateSnapshot(within(t, patience), spec); !backends.Is(err, want) {
		t.Errorf("taken is %+v with %v, want %s", made, err, want)
	}
	<-time.After(time.Minute)
	if left := w.Server.Snapshots(); len(left) != 1 || left[first.Handle] == nil {
		t.Errorf("there are %v, want only %s", left, first.Handle)
	}
	found, err := d.f.Snapshot.FindSnapshot(t.Context(), spec)
	if err != nil || found.Handle != first.Handle || found.Volume != other.Volume {
		t.Errorf("found is %+v with %v, want %+v", found, err, first)
	}
}

// TestRecoveredSnapshotIsThere makes people bring back a deleted snapshot.
func TestRecoveredSnapshotIsThere(t *testing.T) { synctest.Test(t, recoveredSnapshotIsThere) }

func recoveredSnapshotIsThere(t *testing.T) {
	w := region.New(t, region.Quick(), 0)
	d := open(t, w, nil)
	made, err := d.f.Snapshot.CreateSnapshot(t.Context(),
		backends.SnapshotSpec{Name: "s", Volume: d.make("one").Handle})
	if err != nil {
		t.Fatal(err)
	}
	<-time.After(time.Minute)
	if err := d.f.Snapshot.DeleteSnapshot(t.Context(), made.Handle); err != nil {
		t.Fatal(err)
	}
	<-time.After(time.Hour)
	w.Server.Recover(made.Handle)
	if s, err := d.f.Snapshot.GetSnapshot(t.Context(), made.Handle); err != nil || !s.Ready {
		t.Errorf("got %+v with %v", s, err)
	}
	if list, _, err := d.f.Snapshots.ListSnapshots(t.Context(), "", backends.Page{}); err != nil || len(list) != 1 {
		t.Errorf("listed are %+v with %v, want one", list, err)
	}
	if err := d.f.Snapshot.DeleteSnapshot(t.Context(), made.Handle); err != nil || len(w.Server.Snapshots()) != 0 {
		t.Errorf("deleted with %v, and there are %v", err, w.Server.Snapshots())
	}
}

// TestSuccessorIsNoTwin deletes a snapshot that another process has deleted already. Another snapshot of the name was
// taken since.
func TestSuccessorIsNoTwin(t *testing.T) { synctest.Test(t, successorIsNoTwin) }

func successorIsNoTwin(t *testing.T) {
	w := region.New(t, region.Quick(), 0)
	d, standby := open(t, w, nil), open(t, w, nil)
	spec := backends.SnapshotSpec{Name: "s", Volume: d.make("one").Handle}
	gone, err := d.f.Snapshot.CreateSnapshot(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := standby.f.Snapshot.GetSnapshot(t.Context(), gone.Handle); err != nil {
		t.Fatal(err)
	}
	<-time.After(time.Minute)
	if err := d.f.Snapshot.DeleteSnapshot(t.Context(), gone.Handle); err != nil {
		t.Fatal(err)
	}
	next, err := d.f.Snapshot.CreateSnapshot(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	err = standby.f.Snapshot.DeleteSnapshot(t.Context(), gone.Handle)
	if !backends.Is(err, backends.NotFound) || w.Server.Snapshots()[next.Handle] == nil {
		t.Errorf("deleted again with %v, want NotFound; there are %v, want %s", err, w.Server.Snapshots(), next.Handle)
	}
}

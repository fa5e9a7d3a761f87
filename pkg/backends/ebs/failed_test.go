package ebs_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/ebs"
	"github.com/stowage-csi/stowage/tests/cloud/faults"
	"github.com/stowage-csi/stowage/tests/cloud/region"
)

// isGivenUp checks that an error names the snapshot that EC2 gave up, and advises what to do.
func isGivenUp(t *testing.T, call string, err error, kind backends.Kind, handle string) {
	t.Helper()
	if !backends.Is(err, kind) || !strings.Contains(err.Error(), handle) ||
		!strings.Contains(err.Error(), "delete its VolumeSnapshot and take another") {
		t.Errorf("%s: got %v, want %s that names %s and the way out", call, err, kind, handle)
	}
}

// TestFailedSnapshotIsNotAnother: csi-snapshotter repeats CreateSnapshot until the snapshot is ready, and keeps the
// handle of the first answer. If the driver answered for a failed snapshot with another one, the failed one's handle
// would become ready to use.
func TestFailedSnapshotIsNotAnother(t *testing.T) { synctest.Test(t, failedSnapshotIsNotAnother) }

func failedSnapshotIsNotAnother(t *testing.T) {
	w := region.New(t, region.Quick(), 0)
	d := open(t, w, nil)
	spec := backends.SnapshotSpec{Name: "s", Volume: d.make("one").Handle}
	first, err := d.f.Snapshot.CreateSnapshot(t.Context(), spec)
	if err != nil || first.Ready {
		t.Fatalf("got %+v, %v; want one that is not ready yet", first, err)
	}
	w.Server.FailSnapshot(first.Handle)
	for name, d := range map[string]driver{"the same process": d, "a new one": open(t, w, nil)} {
		_, err = d.f.Snapshot.CreateSnapshot(t.Context(), spec)
		isGivenUp(t, name+": CreateSnapshot", err, backends.Exists, first.Handle)
		_, err = d.f.Snapshot.FindSnapshot(t.Context(), spec)
		isGivenUp(t, name+": FindSnapshot", err, backends.Exists, first.Handle)
		_, err = d.f.Snapshot.GetSnapshot(t.Context(), first.Handle)
		isGivenUp(t, name+": GetSnapshot", err, backends.Unusable, first.Handle)
		_, err = d.f.Snapshot.Restore(t.Context(), region.Spec("restored"), first.Handle)
		isGivenUp(t, name+": Restore", err, backends.Invalid, first.Handle)
		list, _, err := d.f.Snapshots.ListSnapshots(t.Context(), "", backends.Page{})
		if err != nil || len(list) != 1 || list[0].Handle != first.Handle || list[0].Ready {
			t.Errorf("%s: listed are %+v, %v; want %s, not ready", name, list, err, first.Handle)
		}
	}
	if err := d.f.Snapshot.DeleteSnapshot(t.Context(), first.Handle); err != nil || len(w.Server.Snapshots()) != 0 {
		t.Errorf("deleted with %v, and there are %v", err, w.Server.Snapshots())
	}
}

// TestSnapshotThatFailsAtOnceIsTakenAnew makes EC2 give up a snapshot before any caller has its handle.
func TestSnapshotThatFailsAtOnceIsTakenAnew(t *testing.T) {
	synctest.Test(t, snapshotThatFailsAtOnceIsTakenAnew)
}

func snapshotThatFailsAtOnceIsTakenAnew(t *testing.T) {
	w := region.New(t, region.Quick(), 0)
	failing := true
	d := open(t, w, func(c *ebs.Config) {
		c.AWS.HTTPClient = before{c.AWS.HTTPClient, "DescribeSnapshots", func() {
			for id := range w.Server.Snapshots() {
				if failing {
					w.Server.FailSnapshot(id)
				}
			}
		}}
	})
	spec := backends.SnapshotSpec{Name: "s", Volume: d.make("one").Handle}
	if made, err := d.f.Snapshot.CreateSnapshot(t.Context(), spec); !backends.Is(err, backends.Denied) ||
		len(w.Server.Snapshots()) != 0 {
		t.Errorf("got %+v, %v, and there are %v; want Denied and none", made, err, w.Server.Snapshots())
	}
	failing = false
	made, err := d.f.Snapshot.CreateSnapshot(t.Context(), spec)
	if err != nil || w.Server.Snapshots()[made.Handle] == nil {
		t.Errorf("taken anew: got %+v, %v", made, err)
	}
}

// TestFailedSnapshotTakesNoDataAlong deletes a failed snapshot beside an intact one of the same name and volume. A
// caller may know the intact one: an earlier version returned it.
func TestFailedSnapshotTakesNoDataAlong(t *testing.T) {
	synctest.Test(t, failedSnapshotTakesNoDataAlong)
}

func failedSnapshotTakesNoDataAlong(t *testing.T) {
	w := region.New(t, region.Quick(), 0)
	d := open(t, w, nil)
	w.Proxy.Script(faults.Rule{Action: "CreateSnapshot", Times: 1, Kind: faults.Duplicate})
	spec := backends.SnapshotSpec{Name: "s", Volume: d.make("one").Handle}
	failed, err := d.f.Snapshot.CreateSnapshot(t.Context(), spec)
	if err != nil || len(w.Server.Snapshots()) != 2 {
		t.Fatalf("got %v and %d snapshots; want 2", err, len(w.Server.Snapshots()))
	}
	w.Server.FailSnapshot(failed.Handle)
	if list, _, err := d.f.Snapshots.ListSnapshots(t.Context(), "", backends.Page{}); err != nil || len(list) != 2 {
		t.Errorf("listed are %+v, %v; want both", list, err)
	}
	err = d.f.Snapshot.DeleteSnapshot(t.Context(), failed.Handle)
	if left := w.Server.Snapshots(); err != nil || len(left) != 1 || left[failed.Handle] != nil {
		t.Errorf("deleted with %v, and there are %v; want the other", err, left)
	}
}

// TestFailedVolumeIsReplaced makes the hardware of a volume fail after its creation, while reads show an earlier state.
func TestFailedVolumeIsReplaced(t *testing.T) {
	for name, lag := range map[string]time.Duration{"shown": 0, "not shown yet": 5 * time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { failedVolumeIsReplaced(t, lag) })
		})
	}
}

func failedVolumeIsReplaced(t *testing.T, lag time.Duration) {
	w := region.New(t, region.Quick(), 0)
	failed := open(t, w, nil).make("v")
	<-time.After(time.Minute)
	w.Server.FailVolume(failed.Handle)
	<-time.After(time.Second)
	w.Server.SetLag(lag)
	d := open(t, w, nil)
	if v, err := d.Find(t.Context(), region.Spec("v")); err == nil {
		t.Errorf("found is %+v", v)
	}
	w.Server.SetLag(0)
	<-time.After(time.Second)
	if v, err := d.Create(t.Context(), region.Spec("v")); err != nil || v.Handle == failed.Handle ||
		len(w.Server.Volumes()) != 1 {
		t.Errorf("made anew is %+v with %v; there are %+v", v, err, w.Server.Volumes())
	}
}

// TestFailedVolumeOfATokenIsNotHandedOut makes EC2 answer with a volume that another process has created with the
// token. The volume has failed since, while reads show it intact.
func TestFailedVolumeOfATokenIsNotHandedOut(t *testing.T) {
	synctest.Test(t, failedVolumeOfATokenIsNotHandedOut)
}

func failedVolumeOfATokenIsNotHandedOut(t *testing.T) {
	w := region.New(t, region.Quick(), 0)
	w.Server.SetLag(time.Hour)
	d := open(t, w, func(c *ebs.Config) {
		c.AWS.HTTPClient = before{c.AWS.HTTPClient, "CreateVolume", func() { w.Server.SetLag(5 * time.Second) }}
	})
	w.Server.SetLag(0)
	failed := open(t, w, nil).make("v")
	<-time.After(time.Minute)
	w.Server.SetLag(time.Hour)
	w.Server.FailVolume(failed.Handle)
	if v, err := d.Create(t.Context(), region.Spec("v")); err == nil && v.Handle == failed.Handle {
		t.Errorf("made is %+v; there are %+v", v, w.Server.Volumes())
	}
}

// TestFailedVolumeStaysWhileItIsAttached makes the hardware of an attached volume fail.
func TestFailedVolumeStaysWhileItIsAttached(t *testing.T) {
	synctest.Test(t, failedVolumeStaysWhileItIsAttached)
}

func failedVolumeStaysWhileItIsAttached(t *testing.T) {
	w := region.New(t, region.Quick(), 0)
	d := open(t, w, nil)
	failed := d.make("v")
	if _, err := d.f.Attach.Attach(t.Context(), region.Request(failed.Handle, region.NodeA)); err != nil {
		t.Fatal(err)
	}
	w.Server.FailVolume(failed.Handle)
	_, err := d.Find(t.Context(), region.Spec("v"))
	if !backends.Is(err, backends.Unavailable) || !strings.Contains(err.Error(), "attached to "+region.NodeA) {
		t.Errorf("found with %v, want Unavailable and where it is attached", err)
	}
	if n := w.Server.Calls()["DeleteVolume"]; n != 0 {
		t.Errorf("EC2 was asked %d times to delete what is attached", n)
	}
	<-time.After(time.Minute)
	if err := d.f.Attach.Detach(t.Context(), failed.Handle, region.NodeA); err != nil {
		t.Fatal(err)
	}
	w.Server.FailVolume(failed.Handle) // The volume is still in state error.
	if v, err := d.Create(t.Context(), region.Spec("v")); err != nil || v.Handle == failed.Handle {
		t.Errorf("made anew is %+v with %v", v, err)
	}
}

package ebs_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/ebs"
	"github.com/stowage-csi/stowage/tests/cloud/faults"
	"github.com/stowage-csi/stowage/tests/cloud/region"
)

// takeAndDrop takes a snapshot, deletes it, and returns a moment later.
func takeAndDrop(t *testing.T, w *region.Region, spec backends.SnapshotSpec) *backends.Snapshot {
	t.Helper()
	d := open(t, w, nil)
	s, err := d.f.Snapshot.CreateSnapshot(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	<-time.After(time.Minute)
	if err := d.f.Snapshot.DeleteSnapshot(t.Context(), s.Handle); err != nil {
		t.Fatal(err)
	}
	<-time.After(time.Second)
	return s
}

// TestNoOldReadIsTakenForASnapshot makes reads show a snapshot that another process has deleted, once the request for a
// new one of the name is sent.
func TestNoOldReadIsTakenForASnapshot(t *testing.T) { synctest.Test(t, noOldReadIsTakenForASnapshot) }

func noOldReadIsTakenForASnapshot(t *testing.T) {
	w := region.New(t, region.Quick(), 0)
	spec := backends.SnapshotSpec{Name: "s", Volume: open(t, w, nil).make("one").Handle}
	gone := takeAndDrop(t, w, spec)
	d := open(t, w, func(c *ebs.Config) {
		c.AWS.HTTPClient = before{c.AWS.HTTPClient, "CreateSnapshot", func() { w.Server.SetLag(5 * time.Second) }}
	})
	made, err := d.f.Snapshot.CreateSnapshot(within(t, time.Minute), spec)
	if err != nil || made.Handle == gone.Handle || w.Server.Snapshots()[made.Handle] == nil {
		t.Errorf("taken is %+v with %v; there are %v", made, err, w.Server.Snapshots())
	}
}

// TestNameIsKeptUntilTheSnapshotShows ends the call for a snapshot before reads show the snapshot. For a moment, they
// show one of the same name that another process has deleted. No process takes a second snapshot.
func TestNameIsKeptUntilTheSnapshotShows(t *testing.T) {
	synctest.Test(t, nameIsKeptUntilTheSnapshotShows)
}

func nameIsKeptUntilTheSnapshotShows(t *testing.T) {
	w := region.New(t, region.Quick(), 0)
	spec := backends.SnapshotSpec{Name: "s", Volume: open(t, w, nil).make("one").Handle}
	<-time.After(time.Minute)
	takeAndDrop(t, w, spec)
	d := open(t, w, nil)
	if _, err := d.Get(t.Context(), spec.Volume); err != nil {
		t.Fatal(err)
	}
	w.Server.SetLag(past)
	if _, err := d.f.Snapshot.CreateSnapshot(within(t, time.Second), spec); !backends.Is(err, backends.Busy) {
		t.Fatalf("taken with %v, want Busy", err)
	}
	w.Server.SetLag(5 * time.Second)
	<-time.After(time.Second)
	w.Server.SetLag(past)
	if _, err := d.f.Snapshot.CreateSnapshot(within(t, time.Second), spec); !backends.Is(err, backends.Busy) {
		t.Errorf("taken again with %v, want Busy", err)
	}
	w.Server.SetLag(0)
	<-time.After(time.Second)
	if _, err := d.f.Snapshot.FindSnapshot(t.Context(), spec); err != nil || len(w.Server.Snapshots()) != 1 {
		t.Errorf("found with %v, and there are %v", err, w.Server.Snapshots())
	}
}

// TestNameOfWhatOthersDeletedIsFree makes another process delete a snapshot that this process has seen. Reads no longer
// show it, so only EC2 knows whether they are too old or too new for it.
func TestNameOfWhatOthersDeletedIsFree(t *testing.T) { synctest.Test(t, nameOfWhatOthersDeletedIsFree) }

func nameOfWhatOthersDeletedIsFree(t *testing.T) {
	w := region.New(t, region.Quick(), 0)
	d := open(t, w, nil)
	spec := backends.SnapshotSpec{Name: "s", Volume: d.make("one").Handle}
	s, err := d.f.Snapshot.CreateSnapshot(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	<-time.After(time.Minute)
	w.Server.SetLag(past) // It exists, but is shown late.
	if _, err := d.f.Snapshot.CreateSnapshot(t.Context(), spec); !backends.Is(err, backends.Exists) {
		t.Errorf("taken again with %v, want Exists", err)
	}
	w.Server.SetLag(0)
	if err := open(t, w, nil).f.Snapshot.DeleteSnapshot(t.Context(), s.Handle); err != nil {
		t.Fatal(err)
	}
	if _, err := d.f.Snapshot.CreateSnapshot(t.Context(), spec); err != nil || len(w.Server.Snapshots()) != 1 {
		t.Errorf("once it is gone: taken with %v, and there are %v", err, w.Server.Snapshots())
	}
}

// TestNoOldReadIsListed makes reads show two snapshots, of which another process has deleted one.
func TestNoOldReadIsListed(t *testing.T) { synctest.Test(t, noOldReadIsListed) }

func noOldReadIsListed(t *testing.T) {
	w := region.New(t, region.Quick(), 0)
	d := open(t, w, nil)
	v := d.make("one")
	there, err := d.f.Snapshot.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "there", Volume: v.Handle})
	if err != nil {
		t.Fatal(err)
	}
	takeAndDrop(t, w, backends.SnapshotSpec{Name: "gone", Volume: v.Handle})
	w.Server.SetLag(5 * time.Second)
	list, _, err := d.f.Snapshots.ListSnapshots(t.Context(), "", backends.Page{})
	if err != nil || len(list) != 1 || list[0].Handle != there.Handle {
		t.Errorf("listed are %+v with %v, want %s", list, err, there.Handle)
	}
}

// TestWhatMayNotBeAskedIsFound has a policy that does not let the driver ask whether a snapshot exists, as the policy
// of earlier versions.
func TestWhatMayNotBeAskedIsFound(t *testing.T) { synctest.Test(t, whatMayNotBeAskedIsFound) }

func whatMayNotBeAskedIsFound(t *testing.T) {
	w := region.New(t, region.Quick(), 0)
	d := open(t, w, nil)
	spec := backends.SnapshotSpec{Name: "s", Volume: d.make("one").Handle}
	made, err := d.f.Snapshot.CreateSnapshot(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	w.Server.Forbid("DeleteTags")
	if _, err := d.f.Snapshot.FindSnapshot(t.Context(), spec); err != nil {
		t.Errorf("found with %v", err)
	}
	if _, err := d.f.Snapshot.GetSnapshot(t.Context(), made.Handle); err != nil {
		t.Errorf("got with %v", err)
	}
	if list, _, err := d.f.Snapshots.ListSnapshots(t.Context(), "", backends.Page{}); err != nil || len(list) != 1 {
		t.Errorf("listed are %+v with %v", list, err)
	}
}

// TestReadsAloneEndNothing makes EC2 hide a volume and a snapshot for longer than it should, and confirm that they
// exist to a process that asks. The process has never seen them.
func TestReadsAloneEndNothing(t *testing.T) {
	for name, call := range map[string]func(ctx context.Context, d driver, v, s string) error{
		"get": func(ctx context.Context, d driver, v, _ string) error {
			_, err := d.Get(ctx, v)
			return err
		},
		"delete": func(ctx context.Context, d driver, v, _ string) error { return d.Delete(ctx, v) },
		"attach": func(ctx context.Context, d driver, v, _ string) error {
			_, err := d.f.Attach.Attach(ctx, region.Request(v, region.NodeA))
			return err
		},
		"detach": func(ctx context.Context, d driver, v, _ string) error {
			return d.f.Attach.Detach(ctx, v, region.NodeA)
		},
		"get the snapshot": func(ctx context.Context, d driver, _, s string) error {
			_, err := d.f.Snapshot.GetSnapshot(ctx, s)
			return err
		},
		"delete the snapshot": func(ctx context.Context, d driver, _, s string) error {
			return d.f.Snapshot.DeleteSnapshot(ctx, s)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { readsAloneEndNothing(t, call) })
		})
	}
}

func readsAloneEndNothing(t *testing.T, call func(ctx context.Context, d driver, v, s string) error) {
	w := region.New(t, region.Quick(), 0)
	first := open(t, w, nil)
	v := first.make("v")
	s, err := first.f.Snapshot.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "s", Volume: v.Handle})
	if err != nil {
		t.Fatal(err)
	}
	<-time.After(time.Minute)
	w.Server.SetLag(past)
	d := open(t, w, nil)
	for _, when := range []string{"at first", "a minute later"} {
		if err := call(within(t, time.Second), d, v.Handle, s.Handle); !undecided(err) {
			t.Errorf("%s: %v, want Busy or Unavailable", when, err)
		}
		<-time.After(time.Minute)
	}
}

// TestLostDeletionIsNotBelieved loses the requests for a deletion. Reads have not shown the volume for so long that it
// would count as gone.
func TestLostDeletionIsNotBelieved(t *testing.T) { synctest.Test(t, lostDeletionIsNotBelieved) }

func lostDeletionIsNotBelieved(t *testing.T) {
	w := region.New(t, region.Quick(), 0)
	d := open(t, w, nil)
	v := d.make("v")
	w.Server.SetLag(past)
	if _, err := d.Get(t.Context(), v.Handle); err != nil {
		t.Fatal(err)
	}
	<-time.After(11 * time.Second) // Its owner was seen so lately that no read is due.
	w.Proxy.Script(faults.Rule{Action: "DeleteVolume", Kind: faults.LoseRequest, Times: 2})
	if err := d.Delete(t.Context(), v.Handle); !undecided(err) || len(w.Server.Volumes()) != 1 {
		t.Errorf("deleted with %v, want Busy or Unavailable; there are %+v", err, w.Server.Volumes())
	}
}

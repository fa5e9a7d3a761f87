package ebs_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/ebs"
	"github.com/stowage-csi/stowage/tests/cloud/faults"
	"github.com/stowage-csi/stowage/tests/cloud/region"
)

func wished() *ebs.SnapshotParameters {
	return &ebs.SnapshotParameters{FastZones: "region-1a, region-1b", LockMode: "compliance", LockDays: 30,
		LockCoolOff: 24}
}

func protectable(t *testing.T, quota int) *region.Region {
	config := region.Quick()
	config.MaxFastRestores = quota
	return region.New(t, config, 0)
}

func TestSnapshotsAreMadeFastAndLocked(t *testing.T) {
	w := protectable(t, 5)
	d := open(t, w, nil)
	spec := backends.SnapshotSpec{Name: "snap", Volume: d.make("one").Handle, Parameters: wished()}
	s, err := d.f.Snapshot.CreateSnapshot(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	zones, mode, until := w.Server.Protection(s.Handle)
	if !slices.Equal(zones, []string{"region-1a", "region-1b"}) || mode != "compliance" ||
		time.Until(until) < 29*24*time.Hour {
		t.Errorf("it is fast in %q and locked in mode %q until %v", zones, mode, until)
	}
	// A repeated request, maybe by another process, applies nothing again.
	for range 2 {
		if _, err := open(t, w, nil).f.Snapshot.FindSnapshot(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
	}
	if calls := w.Server.Calls(); calls["LockSnapshot"] != 1 || calls["EnableFastSnapshotRestores"] != 1 {
		t.Errorf("the calls are %v", calls)
	}
	if err := d.f.Snapshot.DeleteSnapshot(t.Context(), s.Handle); err == nil || !strings.Contains(err.Error(), "locked") {
		t.Errorf("deleting a locked snapshot: %v", err)
	}
}

// The process ends after it took the snapshot and before it locked it.
func TestWishesAreFulfilledLater(t *testing.T) {
	w := protectable(t, 5)
	d := open(t, w, nil)
	spec := backends.SnapshotSpec{Name: "snap", Volume: d.make("one").Handle, Parameters: wished()}
	w.Proxy.Script(faults.Rule{Action: "LockSnapshot", Kind: faults.LoseRequest})
	if _, err := d.f.Snapshot.CreateSnapshot(within(t, 5*time.Second), spec); !undecided(err) {
		t.Fatalf("without a lock: %v, want Busy or Unavailable", err)
	}
	w.Proxy.Stop()
	s, err := open(t, w, nil).f.Snapshot.FindSnapshot(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if zones, mode, _ := w.Server.Protection(s.Handle); len(zones) != 2 || mode != "compliance" {
		t.Errorf("it is fast in %q and locked in mode %q", zones, mode)
	}
	// A snapshot of the name, but of another volume, is not touched.
	other := backends.SnapshotSpec{Name: "plain", Volume: d.make("two").Handle}
	plain, err := d.f.Snapshot.CreateSnapshot(t.Context(), other)
	if err != nil {
		t.Fatal(err)
	}
	other.Volume, other.Parameters = spec.Volume, wished()
	if _, err := d.f.Snapshot.FindSnapshot(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	if zones, mode, _ := w.Server.Protection(plain.Handle); len(zones) != 0 || mode != "" {
		t.Errorf("another volume's snapshot is fast in %q and locked in mode %q", zones, mode)
	}
}

func TestWishesThatCannotBeFulfilled(t *testing.T) { synctest.Test(t, wishesThatCannotBeFulfilled) }

func wishesThatCannotBeFulfilled(t *testing.T) {
	w := protectable(t, 1)
	d := open(t, w, nil)
	volume := d.make("one").Handle
	take := func(name string, p *ebs.SnapshotParameters) error {
		_, err := d.f.Snapshot.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: name, Volume: volume, Parameters: p})
		return err
	}
	if err := take("nowhere", &ebs.SnapshotParameters{FastZones: "region-9z"}); !backends.Is(err, backends.Invalid) ||
		!strings.Contains(err.Error(), "region-1a") {
		t.Errorf("in a zone that is not there: %v, want Invalid with the zones", err)
	}
	if n := w.Server.Calls()["CreateSnapshot"]; n != 0 {
		t.Errorf("%d snapshots were asked for that can never be as wanted", n)
	}
	if err := take("first", &ebs.SnapshotParameters{FastZones: "region-1a"}); err != nil {
		t.Fatal(err)
	}
	if _, err := d.f.Snapshot.CreateSnapshot(within(t, time.Second), backends.SnapshotSpec{Name: "second", Volume: volume,
		Parameters: &ebs.SnapshotParameters{FastZones: "region-1a"}}); !backends.Is(err, backends.Unavailable) {
		t.Errorf("beyond the quota: %v, want Unavailable while EC2 may show one of the name yet", err)
	}
	<-time.After(time.Minute)
	if err := take("second", &ebs.SnapshotParameters{FastZones: "region-1a"}); !backends.Is(err, backends.Exhausted) ||
		!strings.Contains(err.Error(), "Limit") {
		t.Errorf("beyond the quota: %v, want Exhausted with EC2's reason", err)
	}
	if list, _, err := d.f.Snapshots.ListSnapshots(t.Context(), "", backends.Page{}); err != nil || len(list) != 1 {
		t.Errorf("there are the snapshots %+v, %v; want the first only", list, err)
	}
	for _, p := range []*ebs.SnapshotParameters{
		{LockDays: 1}, {LockMode: "governance"}, {LockMode: "governance", LockDays: 1, LockUntil: "2030-12-31T00:00:00Z"},
		{LockMode: "governance", LockDays: 1, LockCoolOff: 1}, {LockMode: "governance", LockUntil: "next year"},
	} {
		if err := take("wrong", p); !backends.Is(err, backends.Invalid) {
			t.Errorf("%+v: %v, want Invalid", p, err)
		}
	}
	if err := take("until",
		&ebs.SnapshotParameters{LockMode: "governance", LockUntil: "2090-12-31T00:00:00Z"}); err != nil {
		t.Error(err)
	}
}

// TestWhatCannotBeFulfilledMayBeGone makes people delete a snapshot whose class cannot be fulfilled, before the driver
// deletes it.
func TestWhatCannotBeFulfilledMayBeGone(t *testing.T) {
	synctest.Test(t, whatCannotBeFulfilledMayBeGone)
}

func whatCannotBeFulfilledMayBeGone(t *testing.T) {
	w := protectable(t, 0)
	people := open(t, w, nil)
	d := open(t, w, func(c *ebs.Config) {
		c.AWS.HTTPClient = before{c.AWS.HTTPClient, "DeleteSnapshot", func() {
			for id := range w.Server.Snapshots() {
				if err := people.f.Snapshot.DeleteSnapshot(t.Context(), id); err != nil {
					t.Error(err)
				}
			}
		}}
	})
	v := d.make("one")
	<-time.After(time.Minute)
	w.Server.SetLag(9500 * time.Millisecond) // When EC2 refuses the class's settings, it knows the snapshot everywhere.
	w.Proxy.Script(faults.Rule{Action: "EnableFastSnapshotRestores", Kind: faults.Delay,
		Delay: 1900 * time.Millisecond})
	_, err := d.f.Snapshot.CreateSnapshot(within(t, 25*time.Second), backends.SnapshotSpec{Name: "s", Volume: v.Handle,
		Parameters: &ebs.SnapshotParameters{FastZones: "region-1a"}})
	// It is not Exhausted yet: see refusals.
	if !backends.Is(err, backends.Unavailable) || strings.Contains(err.Error(), "still there") ||
		len(w.Server.Snapshots()) != 0 {
		t.Errorf("taken with %v, want Unavailable for the limit; there are %v", err, w.Server.Snapshots())
	}
}

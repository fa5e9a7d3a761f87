package ebs_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/ebs"
	"github.com/stowage-csi/stowage/tests/cloud/faults"
	"github.com/stowage-csi/stowage/tests/cloud/region"
)

// moving is a call during which its volume is given to another cluster.
type moving struct {
	timing   func(*ebs.Timing)
	slow     faults.Rule // makes the call wait before its last request
	attached bool        // before the call
	run      func(ctx context.Context, d driver, v string) error
	action   string // of the last request
	sent     int    // how many of them may be sent
	want     backends.Kind
}

func movings() map[string]moving {
	detach := func(ctx context.Context, d driver, v string) error { return d.f.Attach.Detach(ctx, v, region.NodeA) }
	return map[string]moving{
		"a modification that waits for others": {
			timing: func(t *ebs.Timing) { t.Gather = 2 * time.Second },
			run: func(ctx context.Context, d driver, v string) error {
				_, err := d.f.Expand.Expand(ctx, v, backends.CapacityRange{RequiredBytes: 8 << 30})
				return err
			},
			action: "ModifyVolume", want: backends.Denied,
		},
		"an attachment that waits for a device name": {
			timing: func(t *ebs.Timing) { t.Read = time.Minute },
			slow:   faults.Rule{Action: "DescribeInstances", Times: 1, Kind: faults.Delay, Delay: 15 * time.Second},
			run: func(ctx context.Context, d driver, v string) error {
				_, err := d.f.Attach.Attach(ctx, region.Request(v, region.NodeA))
				return err
			},
			action: "AttachVolume", want: backends.Denied,
		},
		"a detachment that is repeated": {
			attached: true, run: detach, action: "DetachVolume", sent: 1, want: backends.Denied,
		},
		"a deletion that is repeated": {
			timing: func(t *ebs.Timing) { t.Call = 15 * time.Second },
			slow:   faults.Rule{Action: "DeleteVolume", Times: 1, Kind: faults.Hang},
			run:    func(ctx context.Context, d driver, v string) error { return d.Delete(ctx, v) },
			action: "DeleteVolume", want: backends.Unavailable, // The lost request may still arrive.
		},
	}
}

// TestOwnerMayChangeMeanwhile gives a volume to another cluster after a call has seen its owner.
func TestOwnerMayChangeMeanwhile(t *testing.T) {
	for name, row := range movings() {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { ownerMayChangeMeanwhile(t, row) }) })
	}
}

func ownerMayChangeMeanwhile(t *testing.T, row moving) {
	config := region.Quick()
	config.Detach = 5 * time.Second
	w := region.New(t, config, 0)
	d := open(t, w, func(c *ebs.Config) {
		if row.timing != nil {
			row.timing(&c.Timing)
		}
	})
	v := d.make("v").Handle
	if row.attached {
		if _, err := d.f.Attach.Attach(t.Context(), region.Request(v, region.NodeA)); err != nil {
			t.Fatal(err)
		}
	}
	w.Proxy.Script(row.slow)
	ended := make(chan error, 1)
	go func() { ended <- row.run(t.Context(), d, v) }()
	<-time.After(time.Second)
	give(t, w, v)
	if err := <-ended; !backends.Is(err, row.want) {
		t.Errorf("%v, want %v", err, row.want)
	}
	if n := w.Server.Calls()[row.action]; n != row.sent {
		t.Errorf("%d requests for %s arrived, want %d", n, row.action, row.sent)
	}
}

// TestHiddenThingsAreLeftAlone gives things to another cluster, while no read shows them.
func TestHiddenThingsAreLeftAlone(t *testing.T) {
	for action, run := range map[string]func(ctx context.Context, d driver, spec backends.SnapshotSpec) error{
		"DetachVolume": func(ctx context.Context, d driver, spec backends.SnapshotSpec) error {
			return d.f.Attach.Detach(ctx, spec.Volume, region.NodeA)
		},
		"DeleteVolume": func(ctx context.Context, d driver, spec backends.SnapshotSpec) error {
			return d.Delete(ctx, spec.Volume)
		},
		"EnableFastSnapshotRestores": func(ctx context.Context, d driver, spec backends.SnapshotSpec) error {
			spec.Parameters = &ebs.SnapshotParameters{FastZones: "region-1a"}
			_, err := d.f.Snapshot.FindSnapshot(ctx, spec)
			return err
		},
	} {
		t.Run(action, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := region.New(t, region.Quick(), 0)
				d := open(t, w, nil)
				spec := backends.SnapshotSpec{Name: "s", Volume: d.make("v").Handle}
				s, err := d.f.Snapshot.CreateSnapshot(t.Context(), spec)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := d.f.Attach.Attach(t.Context(), region.Request(spec.Volume, region.NodeA)); err != nil {
					t.Fatal(err)
				}
				<-time.After(15 * time.Second)
				give(t, w, spec.Volume, s.Handle)
				w.Server.SetLag(time.Hour)
				if err := run(within(t, 5*time.Second), d, spec); !undecided(err) {
					t.Errorf("%v, want Busy or Unavailable", err)
				}
				if n := w.Server.Calls()[action]; n != 0 {
					t.Errorf("%d requests for %s, want none: %s", n, action, fmt.Sprint(w.Server.Volumes()))
				}
			})
		})
	}
}

// TestGoneSnapshotIsDeletedAtOnce repeats a deletion whose answer was lost, and that no read can have shown.
func TestGoneSnapshotIsDeletedAtOnce(t *testing.T) { synctest.Test(t, goneSnapshotIsDeletedAtOnce) }

func goneSnapshotIsDeletedAtOnce(t *testing.T) {
	w := region.New(t, region.Quick(), 0)
	d := open(t, w, nil)
	s, err := d.f.Snapshot.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "s", Volume: d.make("v").Handle})
	if err != nil {
		t.Fatal(err)
	}
	<-time.After(15 * time.Second)
	w.Proxy.Script(faults.Rule{Action: "DeleteSnapshot", Times: 1, Kind: faults.LoseReply})
	if err := d.f.Snapshot.DeleteSnapshot(t.Context(), s.Handle); !backends.Is(err, backends.Unavailable) {
		t.Fatalf("its answer was lost: %v, want Unavailable", err)
	}
	<-time.After(15 * time.Second)
	if err := d.f.Snapshot.DeleteSnapshot(t.Context(), s.Handle); !backends.Is(err, backends.NotFound) {
		t.Errorf("it is gone: %v, want NotFound", err)
	}
}

// TestMovedTwinIsLeft deletes a snapshot whose twin was given to another cluster.
func TestMovedTwinIsLeft(t *testing.T) { synctest.Test(t, movedTwinIsLeft) }

func movedTwinIsLeft(t *testing.T) {
	w := region.New(t, region.Quick(), 0)
	d := open(t, w, nil)
	spec := backends.SnapshotSpec{Name: "s", Volume: d.make("v").Handle}
	w.Proxy.Script(faults.Rule{Action: "CreateSnapshot", Times: 1, Kind: faults.Duplicate})
	s, err := d.f.Snapshot.CreateSnapshot(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	there := w.Server.Snapshots()
	delete(there, s.Handle)
	twins := slices.Collect(maps.Keys(there))
	give(t, w, twins...)
	<-time.After(15 * time.Second)
	if err := d.f.Snapshot.DeleteSnapshot(t.Context(), s.Handle); err != nil {
		t.Error(err)
	}
	if left := slices.Collect(maps.Keys(w.Server.Snapshots())); len(twins) != 1 || !slices.Equal(left, twins) {
		t.Errorf("%v are left, want %v", left, twins)
	}
}

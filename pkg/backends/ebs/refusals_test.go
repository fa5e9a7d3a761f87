package ebs_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/ebs"
	"github.com/stowage-csi/stowage/tests/cloud/region"
)

// refusal is a reason why a new process cannot create anything.
type refusal struct {
	arrange func(w *region.Region) // makes it so, after the former process has ended
	create  func(d driver, name string) error
	want    backends.Kind
	cause   string // a part of the message
}

// creating returns a call that creates a volume of the spec, with the deadline of soon.
func creating(edit func(*backends.Spec)) func(driver, string) error {
	return func(d driver, name string) error {
		spec := region.Spec(name)
		edit(&spec)
		_, err := d.Create(d.soon(), spec)
		return err
	}
}

// soon bounds a call's time, unless its caller is patient.
func (d driver) soon() context.Context {
	if d.patient {
		return d.Context()
	}
	return within(d.T, time.Second)
}

// restoring restores a snapshot, with the deadline of soon.
func restoring(d driver, name, snapshot string) error {
	_, err := d.f.Snapshot.Restore(d.soon(), region.Spec(name), snapshot)
	return err
}

func refusals() map[string]refusal {
	unchanged := func(*region.Region) {}
	return map[string]refusal{
		"there is no such source": {unchanged, func(d driver, name string) error {
			return restoring(d, name, "snap-1")
		}, backends.NotFound, "no snapshot"},
		"the class is wrong": {unchanged, creating(func(s *backends.Spec) {
			s.Parameters = &ebs.Parameters{Type: "gp3", IOPS: 70_000}
		}), backends.Invalid, "70000"},
		"the size is wrong": {unchanged, creating(func(s *backends.Spec) {
			s.Capacity.RequiredBytes = 1 << 60
		}), backends.OutOfRange, "GiB"},
		"no zone is right": {unchanged, creating(func(s *backends.Spec) {
			s.Topology.Requisite = []backends.Topology{{"topology.kubernetes.io/zone": "moon-1a"}}
		}), backends.Exhausted, "moon-1a"},
		"EC2 refuses the parameters": {unchanged, creating(func(s *backends.Spec) {
			s.Parameters = &ebs.Parameters{Type: "gp3", Tags: ebs.Tags{Tag1: strings.Repeat("k", 129) + "=v"}}
		}), backends.Invalid, "EC2 says"},
		"EC2 refuses the caller": {
			func(w *region.Region) { w.Server.Forbid("CreateVolume") },
			creating(func(*backends.Spec) {}), backends.Denied, "Unauthorized"},
		"the quota is filled, maybe by the volume itself": {
			func(w *region.Region) { w.Server.SetQuota(1) },
			creating(func(*backends.Spec) {}), backends.Exhausted, "VolumeLimitExceeded"},
	}
}

// TestNoNameIsRefusedUnseen: csi-provisioner forgets a claim after a final refusal. So a new process must not refuse a
// name for good while EC2 may not yet show the volume that the former process has created.
func TestNoNameIsRefusedUnseen(t *testing.T) {
	for name, row := range refusals() {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { noNameIsRefusedUnseen(t, row) }) })
	}
}

func noNameIsRefusedUnseen(t *testing.T, row refusal) {
	w := formerly(t)
	d := open(t, w, nil)
	row.arrange(w)
	for _, name := range []string{"made", "other"} {
		err := row.create(d, name)
		if !backends.Is(err, backends.Unavailable) || !strings.Contains(err.Error(), row.cause) {
			t.Errorf("%s, which EC2 may not show yet: %v, want Unavailable with the cause %q", name, err, row.cause)
		}
	}
	<-time.After(19 * time.Second)
	if err := row.create(d, "other"); !backends.Is(err, backends.Unavailable) {
		t.Errorf("other, which EC2 may not show yet: %v, want Unavailable", err)
	}
	<-time.After(time.Minute)
	if err := row.create(d, "made"); !backends.Is(err, backends.Exists) {
		t.Errorf("made, when EC2 shows it: %v, want Exists", err)
	}
	if err := row.create(d, "other"); !backends.Is(err, row.want) {
		t.Errorf("other, when EC2 would show it: %v, want %v", err, row.want)
	}
}

// formerly returns a region in which a process has created the volume "made" a moment ago. No read shows it yet.
func formerly(t *testing.T) *region.Region {
	t.Helper()
	config := region.Quick()
	config.Lag = 5 * time.Second
	w := region.New(t, config, 0)
	err := creating(func(*backends.Spec) {})(open(t, w, nil), "made")
	if !backends.Is(err, backends.Busy) || len(w.Server.Volumes()) != 1 {
		t.Fatalf("the former process ends with %v and %d volumes, want Busy and 1", err, len(w.Server.Volumes()))
	}
	return w
}

// TestRefusalIsFinalInTime makes a caller without a deadline wait until it is certain that nothing has the name.
func TestRefusalIsFinalInTime(t *testing.T) {
	for name, row := range refusals() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := formerly(t)
				d := open(t, w, nil)
				row.arrange(w)
				d.patient = true
				if err := row.create(d, "made"); !backends.Is(err, backends.Exists) {
					t.Errorf("made: %v, want Exists", err)
				}
				if err := row.create(d, "other"); !backends.Is(err, row.want) {
					t.Errorf("other: %v, want %v", err, row.want)
				}
			})
		})
	}
}

// TestNoSnapshotIsRefusedUnseen is TestNoNameIsRefusedUnseen for snapshots, of which EC2 knows no token.
func TestNoSnapshotIsRefusedUnseen(t *testing.T) {
	for name, row := range map[string]struct {
		forbidden string
		edit      func(*backends.SnapshotSpec)
		want      backends.Kind
	}{
		"there is no such volume": {"", func(s *backends.SnapshotSpec) { s.Volume = "vol-1" }, backends.NotFound},
		"the class is wrong": {"", func(s *backends.SnapshotSpec) {
			s.Parameters = &ebs.SnapshotParameters{FastZones: "moon-1a"}
		}, backends.Invalid},
		"EC2 refuses the caller": {"CreateSnapshot", func(*backends.SnapshotSpec) {}, backends.Denied},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				noSnapshotIsRefusedUnseen(t, row.forbidden, row.edit, row.want)
			})
		})
	}
}

func noSnapshotIsRefusedUnseen(t *testing.T, forbidden string, edit func(*backends.SnapshotSpec), want backends.Kind) {
	config := region.Quick()
	config.Lag = 5 * time.Second
	w := region.New(t, config, 0)
	volume := open(t, w, nil).make("one").Handle
	<-time.After(time.Minute) // Every read shows it.
	take := func(d driver, name string, edit func(*backends.SnapshotSpec)) error {
		spec := backends.SnapshotSpec{Name: name, Volume: volume}
		edit(&spec)
		_, err := d.f.Snapshot.CreateSnapshot(within(t, time.Second), spec)
		return err
	}
	if err := take(open(t, w, nil), "made", func(*backends.SnapshotSpec) {}); !backends.Is(err, backends.Busy) {
		t.Fatalf("the former process ends with %v, want Busy", err)
	}
	d := open(t, w, nil)
	w.Server.Forbid(forbidden)
	for _, name := range []string{"made", "other"} {
		if err := take(d, name, edit); !backends.Is(err, backends.Unavailable) {
			t.Errorf("%s, which EC2 may not show yet: %v, want Unavailable", name, err)
		}
	}
	<-time.After(time.Minute)
	if err := take(d, "made", edit); !backends.Is(err, backends.Exists) {
		t.Errorf("made, when EC2 shows it: %v, want Exists", err)
	}
	if err := take(d, "other", edit); !backends.Is(err, want) {
		t.Errorf("other, when EC2 would show it: %v, want %v", err, want)
	}
}

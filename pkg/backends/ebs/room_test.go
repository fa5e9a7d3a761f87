package ebs_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/tests/cloud/region"
)

// TestNoRoomForASnapshot: csi-snapshotter forgets a snapshot for which there is no room. So it gets that error only
// once no read can be older than the requests of an earlier process.
func TestNoRoomForASnapshot(t *testing.T) { synctest.Test(t, noRoomForASnapshot) }

func noRoomForASnapshot(t *testing.T) {
	config := region.Quick()
	config.MaxSnapshots, config.Lag = 1, 5*time.Second
	w := region.New(t, config, 0)
	v := open(t, w, nil).make("one").Handle
	<-time.After(time.Minute) // Every read shows it.
	take := func(d driver, name string) error {
		_, err := d.f.Snapshot.CreateSnapshot(within(t, time.Second), backends.SnapshotSpec{Name: name, Volume: v})
		return err
	}
	if err := take(open(t, w, nil), "made"); !backends.Is(err, backends.Busy) || len(w.Server.Snapshots()) != 1 {
		t.Fatalf("the first process ends with %v and %d snapshots, want Busy and 1", err, len(w.Server.Snapshots()))
	}
	next := open(t, w, nil)
	for _, name := range []string{"made", "other"} {
		if err := take(next, name); !backends.Is(err, backends.Unavailable) {
			t.Errorf("%s, before EC2 shows what was asked for: %v, want Unavailable", name, err)
		}
	}
	<-time.After(time.Minute)
	if err := take(next, "made"); !backends.Is(err, backends.Exists) {
		t.Errorf("made, when EC2 shows it: %v, want Exists", err)
	}
	if err := take(next, "other"); !backends.Is(err, backends.Exhausted) {
		t.Errorf("other, when EC2 would show it: %v, want Exhausted", err)
	}
}

package ebs_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/ebs"
	fake "github.com/stowage-csi/stowage/tests/cloud/ec2"
	"github.com/stowage-csi/stowage/tests/cloud/region"
)

// spread is how long EC2 denies a new thing. It is shorter than the time that EC2 may take to show it.
const spread = 5 * time.Second

// TestWhatIsYoungIsNotGone makes EC2 deny a new volume or snapshot in answer to requests that change something. The
// caller is told to retry, and succeeds then.
func TestWhatIsYoungIsNotGone(t *testing.T) {
	class := &ebs.SnapshotParameters{LockMode: "governance", LockDays: 1}
	throughput := int64(300)
	for name, call := range map[string]func(d driver, v, s string) error{
		"delete": func(d driver, v, _ string) error { return d.Delete(d.Context(), v) },
		"find": func(d driver, _, _ string) error {
			_, err := d.Find(d.Context(), region.Spec("v"))
			return err
		},
		"attach": func(d driver, v, _ string) error {
			_, err := d.f.Attach.Attach(d.Context(), region.Request(v, region.NodeA))
			return err
		},
		"expand": func(d driver, v, _ string) error {
			_, err := d.f.Expand.Expand(d.Context(), v, backends.CapacityRange{RequiredBytes: 8 << 30})
			return err
		},
		"modify": func(d driver, v, _ string) error {
			return d.f.Modify.Modify(d.Context(), v, &ebs.Mutable{Throughput: &throughput})
		},
		"take a snapshot": func(d driver, v, _ string) error {
			_, err := d.f.Snapshot.CreateSnapshot(d.Context(), backends.SnapshotSpec{Name: "another", Volume: v})
			return err
		},
		"clone": func(d driver, v, _ string) error {
			_, err := d.f.Clone.Clone(d.Context(), region.Spec("clone"), v)
			return err
		},
		"restore": func(d driver, _, s string) error {
			_, err := d.f.Snapshot.Restore(d.Context(), region.Spec("restored"), s)
			return err
		},
		"find the snapshot": func(d driver, v, _ string) error {
			_, err := d.f.Snapshot.FindSnapshot(d.Context(), backends.SnapshotSpec{Name: "s", Volume: v, Parameters: class})
			return err
		},
		"get the snapshot": func(d driver, _, s string) error {
			_, err := d.f.Snapshot.GetSnapshot(d.Context(), s)
			return err
		},
		"delete the snapshot": func(d driver, _, s string) error { return d.f.Snapshot.DeleteSnapshot(d.Context(), s) },
	} {
		for what, other := range map[string]bool{"by the process that has made it": false, "by another": true} {
			t.Run(name+" "+what, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { whatIsYoungIsNotGone(t, other, call) })
			})
		}
	}
}

func whatIsYoungIsNotGone(t *testing.T, other bool, call func(d driver, v, s string) error) {
	w := region.New(t, region.Quick(), 0)
	d := open(t, w, nil)
	v := d.make("v")
	s, err := d.f.Snapshot.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "s", Volume: v.Handle})
	if err != nil {
		t.Fatal(err)
	}
	<-time.After(time.Second / 2) // The snapshot is ready.
	w.Server.SetSpread(spread)
	if other {
		d = open(t, w, nil)
	}
	if err := call(d, v.Handle, s.Handle); !undecided(err) {
		t.Errorf("while EC2 denies it: %v, want Busy or Unavailable", err)
	}
	if _, err := d.Get(t.Context(), v.Handle); err != nil {
		t.Errorf("what EC2 denies is gone: %v", err)
	}
	<-time.After(spread)
	if err := call(d, v.Handle, s.Handle); err != nil {
		t.Errorf("later: %v", err)
	}
}

// TestUnseenVolumeIsNotGone makes EC2 neither show nor admit a volume that another process has just created. This
// process cannot know that the volume is new. The caller is told to retry, and succeeds then.
func TestUnseenVolumeIsNotGone(t *testing.T) {
	for name, call := range map[string]func(ctx context.Context, d driver, v string) error{
		"get": func(ctx context.Context, d driver, v string) error {
			_, err := d.Get(ctx, v)
			return err
		},
		"delete": func(ctx context.Context, d driver, v string) error { return d.Delete(ctx, v) },
		"attach": func(ctx context.Context, d driver, v string) error {
			_, err := d.f.Attach.Attach(ctx, region.Request(v, region.NodeA))
			return err
		},
		"detach": func(ctx context.Context, d driver, v string) error {
			return d.f.Attach.Detach(ctx, v, region.NodeA)
		},
		"expand": func(ctx context.Context, d driver, v string) error {
			_, err := d.f.Expand.Expand(ctx, v, backends.CapacityRange{RequiredBytes: 8 << 30})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { unseenVolumeIsNotGone(t, call) })
		})
	}
}

func unseenVolumeIsNotGone(t *testing.T, call func(ctx context.Context, d driver, v string) error) {
	w := region.New(t, region.Quick(), 0)
	v := open(t, w, nil).make("v")
	w.Server.SetLag(spread)
	w.Server.SetSpread(spread)
	d := open(t, w, nil)
	if err := call(within(t, time.Second), d, v.Handle); !undecided(err) {
		t.Errorf("while EC2 denies it: %v, want Busy or Unavailable", err)
	}
	<-time.After(spread)
	if err := call(t.Context(), d, v.Handle); err != nil {
		t.Errorf("later: %v", err)
	}
}

// TestYoungSnapshotsAreListed makes EC2 deny a snapshot that reads show.
func TestYoungSnapshotsAreListed(t *testing.T) { synctest.Test(t, youngSnapshotsAreListed) }

func youngSnapshotsAreListed(t *testing.T) {
	w := region.New(t, region.Quick(), 0)
	d := open(t, w, nil)
	v := d.make("v")
	for _, name := range []string{"one", "another"} {
		if _, err := d.f.Snapshot.CreateSnapshot(t.Context(),
			backends.SnapshotSpec{Name: name, Volume: v.Handle}); err != nil {
			t.Fatal(err)
		}
	}
	w.Server.SetSpread(spread)
	if list, _, err := d.f.Snapshots.ListSnapshots(t.Context(), "", backends.Page{}); err != nil || len(list) != 2 {
		t.Errorf("listed are %+v with %v, want two", list, err)
	}
}

// TestYoungVolumeIsNotMadeTwice makes EC2 show a volume later than usual, and deny it meanwhile.
func TestYoungVolumeIsNotMadeTwice(t *testing.T) { synctest.Test(t, youngVolumeIsNotMadeTwice) }

func youngVolumeIsNotMadeTwice(t *testing.T) {
	config := region.Quick()
	config.Lag, config.Spread = spread, spread
	w := region.New(t, config, 0)
	d := open(t, w, nil)
	<-time.After(time.Minute)
	if _, err := d.Create(within(t, time.Minute), region.Spec("v")); err != nil && !undecided(err) {
		t.Error(err)
	}
	if made := w.Server.Volumes(); len(made) != 1 {
		t.Errorf("there are %+v, want one", made)
	}
}

// TestYoungInstanceKeepsWhatItHas makes EC2 deny an instance that was just started, when a volume is to be detached
// from it.
func TestYoungInstanceKeepsWhatItHas(t *testing.T) { synctest.Test(t, youngInstanceKeepsWhatItHas) }

func youngInstanceKeepsWhatItHas(t *testing.T) {
	w := region.New(t, region.Quick(), 0)
	d := open(t, w, nil)
	v := d.make("v")
	<-time.After(time.Minute)
	node := w.Server.NewInstanceID()
	w.Server.AddInstance(fake.Instance{ID: node, Type: "m5.tiny", Zone: "region-1a"})
	if _, err := d.f.Attach.Attach(t.Context(), region.Request(v.Handle, node)); err != nil {
		t.Fatal(err)
	}
	w.Server.SetSpread(spread)
	if err := d.f.Attach.Detach(t.Context(), v.Handle, node); !backends.Is(err, backends.Busy) {
		t.Errorf("while EC2 denies the instance: %v, want Busy; it is %+v", err, w.Server.Volumes()[0])
	}
	<-time.After(spread)
	if err := d.f.Attach.Detach(t.Context(), v.Handle, node); err != nil || len(w.Server.Volumes()[0].Instances) != 0 {
		t.Errorf("later: %v; it is %+v", err, w.Server.Volumes()[0])
	}
}

package ebs_test

import (
	"cmp"
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/ebs"
	"github.com/stowage-csi/stowage/tests/cloud/faults"
	"github.com/stowage-csi/stowage/tests/cloud/region"
)

// TestUnreadableNameIsNotAwaited makes EC2 refuse to show what has a name: no wait makes a refusal final.
func TestUnreadableNameIsNotAwaited(t *testing.T) {
	for action, create := range map[string]func(context.Context, driver) error{
		"DescribeVolumes": func(ctx context.Context, d driver) error {
			_, err := d.Create(ctx, region.Spec("v"))
			return err
		},
		"DescribeSnapshots": func(ctx context.Context, d driver) error {
			_, err := d.f.Snapshot.CreateSnapshot(ctx, backends.SnapshotSpec{Name: "s", Volume: "vol-1"})
			return err
		},
	} {
		t.Run(action, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := region.New(t, region.Quick(), 0)
				w.Server.Forbid(action)
				err := create(within(t, time.Hour), open(t, w, nil))
				if !backends.Is(err, backends.Unavailable) || !strings.Contains(err.Error(), "UnauthorizedOperation") ||
					strings.Contains(err.Error(), "final") {
					t.Errorf("%v, want Unavailable with the cause and no time", err)
				}
				if n := w.Server.Calls()[action]; n != 1 {
					t.Errorf("%d requests for %s, want 1", n, action)
				}
			})
		})
	}
}

// TestGoneSourceProvesNothing: EC2 may check the source of a volume before the client token, which another process may
// have used.
func TestGoneSourceProvesNothing(t *testing.T) {
	type call = func(ctx context.Context, d driver, name string) error
	for name, arrange := range map[string]func(t *testing.T, d driver, v, s string) call{
		"a volume": func(t *testing.T, d driver, v, _ string) call {
			t.Helper()
			if err := d.Delete(t.Context(), v); err != nil {
				t.Fatal(err)
			}
			return func(ctx context.Context, d driver, name string) error {
				_, err := d.f.Clone.Clone(ctx, region.Spec(name), v)
				return err
			}
		},
		"a snapshot": func(t *testing.T, d driver, _, s string) call {
			t.Helper()
			if err := d.f.Snapshot.DeleteSnapshot(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			return func(ctx context.Context, d driver, name string) error {
				_, err := d.f.Snapshot.Restore(ctx, region.Spec(name), s)
				return err
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := region.New(t, region.Quick(), 0)
				first := open(t, w, nil)
				v := first.make("source").Handle
				s, err := first.f.Snapshot.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "s", Volume: v})
				if err != nil {
					t.Fatal(err)
				}
				<-time.After(time.Minute)
				w.Server.SetLag(5 * time.Second)
				create, d := arrange(t, first, v, s.Handle), open(t, w, nil)
				<-time.After(time.Second)
				if err := create(within(t, time.Second), d, "other"); !backends.Is(err, backends.Unavailable) {
					t.Errorf("at once: %v, want Unavailable", err)
				}
				<-time.After(time.Minute)
				if err := create(within(t, time.Second), d, "other"); !backends.Is(err, backends.NotFound) {
					t.Errorf("a minute later: %v, want NotFound", err)
				}
			})
		})
	}
}

// TestUnknownEffectBeginsAnew: nothing had a name for a while, and then a request may have created a volume of it.
func TestUnknownEffectBeginsAnew(t *testing.T) {
	large := creating(func(s *backends.Spec) { s.Capacity.RequiredBytes = 8 << 30 })
	for name, row := range map[string]struct {
		request func(w *region.Region, d driver, other driver) error
		then    time.Duration // when the name is refused again, since the beginning
	}{
		"without an answer": {func(w *region.Region, d, _ driver) error {
			w.Proxy.Script(faults.Rule{Action: "CreateVolume", Times: 1, Kind: faults.Delay, Delay: 9 * time.Second})
			return large(d, "v")
		}, 25 * time.Second},
		"of another controller": {func(_ *region.Region, d, other driver) error {
			return cmp.Or(notUndecided(creating(func(*backends.Spec) {})(other, "v")), large(d, "v"))
		}, 20500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				config := region.Quick()
				config.Lag = 9900 * time.Millisecond
				w := region.New(t, config, 0)
				d, began := open(t, w, nil), time.Now()
				wrong := creating(func(s *backends.Spec) { s.Parameters = &ebs.Parameters{Type: "gp3", IOPS: 70_000} })
				if err := wrong(d, "v"); !backends.Is(err, backends.Unavailable) {
					t.Fatalf("at first: %v, want Unavailable", err)
				}
				<-time.After(12 * time.Second)
				if err := row.request(w, d, open(t, w, nil)); !undecided(err) {
					t.Fatalf("the request ends with %v, want Busy or Unavailable", err)
				}
				<-time.After(row.then - time.Since(began))
				if err := wrong(d, "v"); !backends.Is(err, backends.Unavailable) {
					t.Errorf("before EC2 shows its effect: %v, want Unavailable", err)
				}
				if n := len(w.Server.Volumes()); n != 1 {
					t.Errorf("there are %d volumes, want 1", n)
				}
			})
		})
	}
}

// notUndecided returns an error by which the outcome of a call is known.
func notUndecided(err error) error {
	if undecided(err) {
		return nil
	}
	return err
}

// TestFailedVolumeHasItsName: after a final refusal, nothing would ever remove a volume that EC2 has given up, and that
// could not be deleted at once.
func TestFailedVolumeHasItsName(t *testing.T) { synctest.Test(t, failedVolumeHasItsName) }

func failedVolumeHasItsName(t *testing.T) {
	w := region.New(t, region.Quick(), 0)
	w.Server.Doom(1)
	w.Server.Forbid("DeleteVolume")
	if err := creating(func(*backends.Spec) {})(open(t, w, nil), "v"); !backends.Is(err, backends.Unavailable) {
		t.Fatalf("the former process ends with %v, want Unavailable", err)
	}
	d := open(t, w, nil)
	for range 2 {
		if err := refusals()["the class is wrong"].create(d, "v"); !backends.Is(err, backends.Unavailable) {
			t.Errorf("%v, want Unavailable", err)
		}
		<-time.After(time.Minute)
	}
	w.Server.Forbid()
	if err := creating(func(*backends.Spec) {})(d, "v"); err != nil {
		t.Error(err)
	}
}

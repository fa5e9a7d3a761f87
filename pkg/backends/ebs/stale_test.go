package ebs_test

import (
	"bytes"
	"io"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/ebs"
	"github.com/stowage-csi/stowage/pkg/cloud/pace"
	"github.com/stowage-csi/stowage/tests/cloud/region"
)

// past is longer ago than anything that the tests do.
const past = 24 * time.Hour

// TestOneOldReadProvesNothing makes reads show the state before the last change.
func TestOneOldReadProvesNothing(t *testing.T) {
	for name, check := range map[string]func(t *testing.T, w *region.Region, d driver, v *backends.Volume){
		"a volume that is not shown is deleted": func(t *testing.T, w *region.Region, d driver, v *backends.Volume) {
			if err := d.Delete(t.Context(), v.Handle); err != nil || len(w.Server.Volumes()) != 0 {
				<-time.After(time.Second) // Its deletion may still be under way.
				if left := w.Server.Volumes(); err != nil || len(left) != 0 {
					t.Errorf("deleted with %v, and there is %+v", err, left)
				}
			}
		},
		"one that is not shown to be attached is detached": func(
			t *testing.T, w *region.Region, d driver, v *backends.Volume) {
			w.Server.SetLag(0)
			if _, err := d.f.Attach.Attach(t.Context(), region.Request(v.Handle, region.NodeA)); err != nil {
				t.Fatal(err)
			}
			w.Server.SetLag(past)
			if err := d.f.Attach.Detach(t.Context(), v.Handle, region.NodeA); err != nil ||
				len(w.Server.Volumes()[0].Instances) != 0 {
				t.Errorf("detached with %v, and it is %+v", err, w.Server.Volumes()[0])
			}
		},
		"a snapshot of one that is not shown": func(t *testing.T, w *region.Region, d driver, v *backends.Volume) {
			s := backends.SnapshotSpec{Name: "snapshot", Volume: v.Handle}
			if _, err := d.f.Snapshot.CreateSnapshot(within(t, time.Second), s); err == nil ||
				backends.Is(err, backends.NotFound) || len(w.Server.Snapshots()) != 1 {
				t.Errorf("taken with %v, and there are %v", err, w.Server.Snapshots())
			}
			<-time.After(time.Minute) // Pending changes have ended.
		},
		"a snapshot that is not shown is not taken twice": func(
			t *testing.T, w *region.Region, d driver, v *backends.Volume) {
			w.Server.SetLag(0)
			s := backends.SnapshotSpec{Name: "snapshot", Volume: v.Handle}
			made, err := d.f.Snapshot.CreateSnapshot(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			w.Server.SetLag(past)
			if _, err := d.f.Snapshot.CreateSnapshot(within(t, time.Second), s); !backends.Is(err, backends.Exists) ||
				len(w.Server.Snapshots()) != 1 {
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

// TestDeletionIsOneRequest deletes a volume whose owner the process knows.
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

// TestAnOldReadRevivesNothing makes reads show a volume that another process has deleted.
func TestAnOldReadRevivesNothing(t *testing.T) {
	const late = 5 * time.Second
	for name, tt := range map[string]struct {
		shown, deletion time.Duration
		standby         bool // the process was started long before
		left            int  // how many volumes remain in the end
	}{
		"a new process":                                  {shown: late, left: 1},
		"a process that was standby":                     {shown: late, standby: true, left: 1},
		"it is still being deleted":                      {shown: late, deletion: time.Minute, left: 2},
		"not shown, it is still what its token has made": {left: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				config := region.Quick()
				config.Delete = max(config.Delete, tt.deletion)
				w := region.New(t, config, 0)
				d := open(t, w, nil)
				next := d
				if tt.standby {
					next = open(t, w, nil)
				}
				gone := d.make("v")
				<-time.After(10 * time.Minute)
				if err := d.Delete(t.Context(), gone.Handle); err != nil {
					t.Fatal(err)
				}
				<-time.After(late / 2)
				if !tt.standby {
					next = open(t, w, nil)
				}
				w.Server.SetLag(tt.shown)
				if _, err := next.Find(within(t, time.Minute), region.Spec("v")); tt.shown > 0 &&
					!backends.Is(err, backends.NotFound) {
					t.Errorf("found: %v", err)
				}
				v, err := next.Create(within(t, time.Minute), region.Spec("v"))
				if err != nil || v.Handle == gone.Handle || len(w.Server.Volumes()) != tt.left {
					t.Errorf("made %+v with %v, and there are %+v", v, err, w.Server.Volumes())
				}
			})
		})
	}
}

// TestAnOldReadRevivesNothingUnasked makes reads show a volume that another process has deleted, while the process may
// not ask EC2.
func TestAnOldReadRevivesNothingUnasked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := region.New(t, region.Quick(), 0)
		d := open(t, w, nil)
		gone := d.make("v")
		d.make("other")
		next := open(t, w, func(c *ebs.Config) { c.Rates["CreateTags"] = pace.Limit{Burst: 1, PerSecond: 0.001} })
		if _, err := next.Find(t.Context(), region.Spec("other")); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Minute)
		if err := d.Delete(t.Context(), gone.Handle); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Second)
		w.Server.SetLag(5 * time.Second)
		if v, err := next.Find(within(t, time.Minute), region.Spec("v")); !backends.Is(err, backends.Unavailable) {
			t.Errorf("found %+v with %v, want Unavailable", v, err)
		}
	})
}

// TestTwoFindAtATime makes two controllers ask whether a volume still exists, while EC2 shows changes late.
func TestTwoFindAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := region.New(t, region.Quick(), 0)
		made := open(t, w, nil).make("v")
		<-time.After(time.Minute)
		w.Server.SetLag(3 * time.Second)
		var group sync.WaitGroup
		for range 2 {
			d := open(t, w, nil)
			group.Go(func() {
				if v, err := d.Find(within(t, time.Minute), region.Spec("v")); err != nil || v.Handle != made.Handle {
					t.Errorf("found %+v, %v", v, err)
				}
			})
		}
		group.Wait()
	})
}

// before is a client of EC2 that calls a function before it sends an action.
type before struct {
	aws.HTTPClient
	action string
	call   func()
}

// Do sends the request.
func (b before) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if bytes.HasPrefix(body, []byte("Action="+b.action+"&")) {
		b.call()
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return b.HTTPClient.Do(r)
}

// TestOneOldReadAfterAnother makes EC2 show a thing, and then deny it in answer to a read by its ID.
func TestOneOldReadAfterAnother(t *testing.T) {
	lagging := func(t *testing.T, action string) (*region.Region, driver) {
		w := region.New(t, region.Quick(), 0)
		return w, open(t, w, func(c *ebs.Config) {
			c.AWS.HTTPClient = before{c.AWS.HTTPClient, action, func() { w.Server.SetLag(past) }}
		})
	}
	t.Run("a snapshot that is to be locked", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, d := lagging(t, "DescribeLockedSnapshots")
			class := &ebs.SnapshotParameters{LockMode: "governance", LockDays: 1}
			spec := backends.SnapshotSpec{Name: "snapshot", Volume: d.make("one").Handle, Parameters: class}
			if _, err := d.f.Snapshot.CreateSnapshot(t.Context(), spec); !backends.Is(err, backends.Unavailable) ||
				len(w.Server.Snapshots()) != 1 {
				t.Fatalf("taken with %v, want Unavailable, and there are %v", err, w.Server.Snapshots())
			}
			w.Server.SetLag(0)
			made, err := open(t, w, nil).f.Snapshot.FindSnapshot(t.Context(), spec)
			if err != nil {
				t.Fatal(err)
			}
			if _, mode, _ := w.Server.Protection(made.Handle); mode != class.LockMode {
				t.Errorf("it is locked in mode %q", mode)
			}
		})
	})
	t.Run("a volume whose health is asked for", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			_, d := lagging(t, "DescribeVolumeStatus")
			if issues, err := d.f.Health.Health(t.Context(), d.make("one").Handle); err != nil || len(issues) != 0 {
				t.Errorf("it has %+v, %v; want nothing, since no check has told of it", issues, err)
			}
		})
	})
}

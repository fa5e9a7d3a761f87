package ebs

import (
	"cmp"
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/ebs"
	"github.com/stowage-csi/stowage/pkg/base64url"
	"github.com/stowage-csi/stowage/pkg/cloud/pace"
	"github.com/stowage-csi/stowage/tests/cloud/faults"
	"github.com/stowage-csi/stowage/tests/cloud/region"
)

// controller is a controller with its features.
type controller struct {
	backends.Backend
	backends.Features
}

// ruled returns a controller with the rights that deploy/aws gives it.
func ruled(t *testing.T, r *region.Region, edits ...func(*ebs.Config)) controller {
	t.Helper()
	d := ebs.Definition()
	options := backends.Options{Driver: "ebs.csi.stowage.dev", Config: d.NewConfig(), Log: slog.New(slog.DiscardHandler)}
	r.Configure(&options)
	c, _ := options.Config.(*ebs.Config) // the type that NewConfig returns
	s := side{policy: policyOf(t, "controller", "base64:"+base64url.Encode([]byte(c.ClusterID)))}
	c.AWS.HTTPClient = s.guard(r, c.AWS.HTTPClient)
	for _, edit := range edits {
		edit(c)
	}
	instance, err := d.Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	return controller{instance.Controller, backends.Resolve(instance.Controller, instance.Node)}
}

// old is the lag of reads.
const old = 5 * time.Second

// calls returns calls on a volume v and a snapshot s, whose names are also v and s.
func calls() map[string]func(ctx context.Context, f controller, v, s string) error {
	return map[string]func(ctx context.Context, f controller, v, s string) error{
		"find": func(ctx context.Context, f controller, _, _ string) error {
			_, err := f.Find(ctx, region.Spec("v"))
			return err
		},
		"attach": func(ctx context.Context, f controller, v, _ string) error {
			_, err := f.Attach.Attach(ctx, region.Request(v, region.NodeA))
			return err
		},
		"detach": func(ctx context.Context, f controller, v, _ string) error {
			return f.Attach.Detach(ctx, v, region.NodeA)
		},
		"expand": func(ctx context.Context, f controller, v, _ string) error {
			_, err := f.Expand.Expand(ctx, v, backends.CapacityRange{RequiredBytes: 8 << 30})
			return err
		},
		"take a snapshot": func(ctx context.Context, f controller, v, _ string) error {
			_, err := f.Snapshot.CreateSnapshot(ctx, backends.SnapshotSpec{Name: "another", Volume: v})
			return err
		},
		"clone": func(ctx context.Context, f controller, v, _ string) error {
			_, err := f.Clone.Clone(ctx, region.Spec("clone"), v)
			return err
		},
		"restore": func(ctx context.Context, f controller, _, s string) error {
			_, err := f.Snapshot.Restore(ctx, region.Spec("restored"), s)
			return err
		},
		"find the snapshot": func(ctx context.Context, f controller, v, _ string) error {
			_, err := f.Snapshot.FindSnapshot(ctx, backends.SnapshotSpec{Name: "s", Volume: v})
			return err
		},
		"get the snapshot": func(ctx context.Context, f controller, _, s string) error {
			_, err := f.Snapshot.GetSnapshot(ctx, s)
			return err
		},
		"delete": func(ctx context.Context, f controller, v, _ string) error { return f.Delete(ctx, v) },
		"delete the snapshot": func(ctx context.Context, f controller, _, s string) error {
			return f.Snapshot.DeleteSnapshot(ctx, s)
		},
	}
}

// TestWhatIsGoneIsNotThere lets reads show resources that another process has deleted, to a controller with the rights
// of the shipped policy. The policy depends on a resource's tags, and a deleted resource has none: EC2 then reports
// that the request is forbidden.
func TestWhatIsGoneIsNotThere(t *testing.T) {
	for name, call := range calls() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := region.New(t, region.Quick(), 0)
				v, s := vanished(t, r)
				err := call(t.Context(), ruled(t, r), v, s)
				if absent := backends.Is(err, backends.NotFound); !absent && (err != nil || name != "delete") {
					t.Errorf("got %v, want NotFound; there are %+v", err, r.Server.Volumes())
				}
			})
		})
	}
}

// TestWhatMayBeGoneIsNotThere lets EC2 forbid a request on a resource, as it does for a deleted one, and not answer
// whether the resource exists. This is no missing right, and a read proves nothing.
func TestWhatMayBeGoneIsNotThere(t *testing.T) {
	for _, kind := range []faults.Kind{faults.Throttle, faults.LoseRequest, faults.None} {
		for name, call := range calls() {
			t.Run(cmp.Or(string(kind), "not sent")+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := region.New(t, region.Quick(), 0)
					f := ruled(t, r, func(c *ebs.Config) {
						if kind == faults.None {
							c.Rates["DeleteTags"] = pace.Limit{Burst: 1, PerSecond: 0.001}
						}
					})
					askAway(t, f)
					v, s := vanished(t, r)
					r.Proxy.Script(faults.Rule{Action: "DeleteTags", Kind: kind})
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					if err := call(ctx, f, v, s); !backends.Is(err, backends.Busy) && !backends.Is(err, backends.Unavailable) {
						t.Errorf("got %v, want Busy or Unavailable", err)
					}
				})
			})
		}
	}
}

// askAway makes a controller look up an existing resource once.
func askAway(t *testing.T, f controller) {
	t.Helper()
	if _, err := f.Create(t.Context(), region.Spec("other")); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Find(t.Context(), region.Spec("other")); err != nil {
		t.Fatal(err)
	}
}

// vanished creates a volume, and a snapshot of another one, that are deleted and that reads still show.
func vanished(t *testing.T, r *region.Region) (volume, snapshot string) {
	t.Helper()
	f := ruled(t, r)
	v, err := f.Create(t.Context(), region.Spec("v"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := f.Snapshot.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "s", Volume: v.Handle})
	if err != nil {
		t.Fatal(err)
	}
	<-time.After(time.Minute)
	if err := f.Snapshot.DeleteSnapshot(t.Context(), s.Handle); err != nil {
		t.Fatal(err)
	}
	if err := f.Delete(t.Context(), v.Handle); err != nil {
		t.Fatal(err)
	}
	<-time.After(time.Second)
	r.Server.SetLag(old)
	return v.Handle, s.Handle
}

// TestWhatIsThereIsFound checks that a controller with the shipped policy finds existing resources with at most one
// query.
func TestWhatIsThereIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := region.New(t, region.Quick(), 0)
		v, err := ruled(t, r).Create(t.Context(), region.Spec("v"))
		if err != nil {
			t.Fatal(err)
		}
		if found, err := ruled(t, r).Find(t.Context(), region.Spec("v")); err != nil || found.Handle != v.Handle {
			t.Errorf("found %+v with %v, want %s", found, err, v.Handle)
		}
	})
}

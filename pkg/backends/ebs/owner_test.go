package ebs_test

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/ebs"
	"github.com/stowage-csi/stowage/tests/cloud/region"
)

// elsewhere configures a process of another cluster.
func elsewhere(c *ebs.Config) { c.ClusterID = "elsewhere" }

// TestAnothersThingsAreLeftAlone passes things of another cluster to every call that would change them, or read their
// data.
func TestAnothersThingsAreLeftAlone(t *testing.T) { synctest.Test(t, anothersThingsAreLeftAlone) }

func anothersThingsAreLeftAlone(t *testing.T) {
	w := region.New(t, region.Quick(), 0)
	owner, d := open(t, w, nil), open(t, w, elsewhere)
	v := owner.make("theirs").Handle
	s, err := owner.f.Snapshot.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "snap", Volume: v})
	if err != nil {
		t.Fatal(err)
	}
	<-time.After(time.Minute) // of simulated time: the snapshot is ready by then
	for name, call := range foreignCalls(d, v, s.Handle) {
		before := changes(w.Server.Calls())
		err := call(t.Context())
		if !backends.Is(err, backends.Denied) || !strings.Contains(err.Error(), "ebs.csi.stowage.dev/cluster") {
			t.Errorf("%s: %v, want Denied and the tag", name, err)
		}
		if after := changes(w.Server.Calls()); !maps.Equal(before, after) {
			t.Errorf("%s: EC2 was asked for a change: %v, before %v", name, after, before)
		}
	}
	if err := d.f.Attach.Detach(t.Context(), v, region.NodeA); err != nil {
		t.Errorf("detach what is not attached: %v", err)
	}
	if _, err := owner.f.Attach.Attach(t.Context(), region.Request(v, region.NodeA)); err != nil {
		t.Fatal(err)
	}
	for _, node := range []string{region.NodeA, ""} {
		if err := d.f.Attach.Detach(t.Context(), v, node); !backends.Is(err, backends.Denied) ||
			w.Server.Calls()["DetachVolume"] > 0 {
			t.Errorf("detach from %q what its owner has attached: %v, want Denied", node, err)
		}
	}
}

// foreignCalls are the calls for a volume and its snapshot that check the owner.
func foreignCalls(d driver, v, snapshot string) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"delete": func(ctx context.Context) error { return d.Delete(ctx, v) },
		"attach": func(ctx context.Context) error {
			_, err := d.f.Attach.Attach(ctx, region.Request(v, region.NodeA))
			return err
		},
		"expand": func(ctx context.Context) error {
			_, err := d.f.Expand.Expand(ctx, v, backends.CapacityRange{RequiredBytes: 8 << 30})
			return err
		},
		"expand to what it has": func(ctx context.Context) error {
			_, err := d.f.Expand.Expand(ctx, v, backends.CapacityRange{RequiredBytes: 1 << 30})
			return err
		},
		"modify": func(ctx context.Context) error {
			return d.f.Modify.Modify(ctx, v, &ebs.Mutable{Type: aws.String("io2"), IOPS: aws.Int64(3500)})
		},
		"snapshot": func(ctx context.Context) error {
			_, err := d.f.Snapshot.CreateSnapshot(ctx, backends.SnapshotSpec{Name: "mine", Volume: v})
			return err
		},
		"clone": func(ctx context.Context) error { _, err := d.f.Clone.Clone(ctx, region.Spec("copy"), v); return err },
		"restore": func(ctx context.Context) error {
			_, err := d.f.Snapshot.Restore(ctx, region.Spec("restored"), snapshot)
			return err
		},
		"delete snapshot": func(ctx context.Context) error { return d.f.Snapshot.DeleteSnapshot(ctx, snapshot) },
	}
}

// changes are the requests that change something.
func changes(calls map[string]int) map[string]int {
	maps.DeleteFunc(calls, func(action string, _ int) bool { return strings.HasPrefix(action, "Describe") })
	return calls
}

// TestAdoption puts the tag of this cluster on a volume, as an administrator does.
func TestAdoption(t *testing.T) { synctest.Test(t, adoption) }

func adoption(t *testing.T) {
	w := region.New(t, region.Quick(), 0)
	v := open(t, w, nil).make("theirs").Handle
	d := open(t, w, elsewhere)
	if err := d.Delete(t.Context(), v); !backends.Is(err, backends.Denied) {
		t.Fatalf("before: %v, want Denied", err)
	}
	options := backends.Options{Config: ebs.Definition().NewConfig()}
	w.Configure(&options)
	_, err := ec2.NewFromConfig(options.Config.(*ebs.Config).AWS).CreateTags(t.Context(), &ec2.CreateTagsInput{
		Resources: []string{v},
		Tags:      []types.Tag{{Key: aws.String("ebs.csi.stowage.dev/cluster"), Value: aws.String("elsewhere")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, call := range []func() error{
		func() error { _, err := d.f.Attach.Attach(t.Context(), region.Request(v, region.NodeA)); return err },
		func() error { return d.f.Attach.Detach(t.Context(), v, region.NodeA) },
		func() error { return d.Delete(t.Context(), v) },
	} {
		if err := call(); err != nil {
			t.Error(err)
		}
	}
}

// TestOwnershipCostsNoRequest attaches and deletes one volume: that takes one look each, and the requests that change
// something.
func TestOwnershipCostsNoRequest(t *testing.T) { synctest.Test(t, ownershipCostsNoRequest) }

func ownershipCostsNoRequest(t *testing.T) {
	w := region.New(t, region.Quick(), 0)
	v := open(t, w, nil).make("theirs").Handle
	d, before := open(t, w, elsewhere), total(w.Server.Calls())
	if err := d.Delete(t.Context(), v); !backends.Is(err, backends.Denied) {
		t.Errorf("%v, want Denied", err)
	}
	if n := total(w.Server.Calls()) - before; n != 1 {
		t.Errorf("a refusal took %d requests, want the one look", n)
	}
}

// TestClusterIsKnown opens the backend without an ID in its configuration.
func TestClusterIsKnown(t *testing.T) { synctest.Test(t, clusterIsKnown) }

func clusterIsKnown(t *testing.T) {
	w := region.New(t, region.Quick(), 0)
	const uid = "5ac2a1b8-7f4e-4b0c-9f0e-3c1a2b3c4d5e"
	uidOf := func(id string, err error) func(context.Context) (string, error) {
		return func(context.Context) (string, error) { return id, err }
	}
	for name, row := range map[string]struct {
		configured string
		cluster    func(context.Context) (string, error)
		nodeOnly   bool
		want       string // the tag's value; empty for a refusal
	}{
		"derived": {cluster: uidOf(uid, nil), want: uid},
		"configured": {configured: "production", cluster: uidOf("", errors.New("must not be asked")),
			want: "production"},
		"that of former times":  {configured: "default", want: "default"},
		"no cluster":            {},
		"a cluster that is off": {cluster: uidOf("", errors.New("is out of reach"))},
		"a node needs none":     {nodeOnly: true, want: "none is made"},
	} {
		d := ebs.Definition()
		options := backends.Options{Driver: "ebs.csi.stowage.dev", Config: d.NewConfig(), Cluster: row.cluster,
			NodeOnly: row.nodeOnly, Log: slog.New(slog.DiscardHandler)}
		w.Configure(&options)
		options.Config.(*ebs.Config).ClusterID = row.configured
		instance, err := d.Open(t.Context(), options)
		if row.want == "" {
			if !backends.Is(err, backends.Invalid) || !strings.Contains(err.Error(), "clusterID") {
				t.Errorf("%s: %v, want Invalid and clusterID", name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if row.nodeOnly {
			continue
		}
		v, err := instance.Controller.Create(t.Context(), region.Spec(name))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, seen := range w.Server.Volumes() {
			if have := seen.Tags["ebs.csi.stowage.dev/cluster"]; seen.ID == v.Handle && have != row.want {
				t.Errorf("%s: the tag is %q, want %q", name, have, row.want)
			}
		}
	}
}

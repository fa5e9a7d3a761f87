package ebs_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
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

// give makes the things the cluster elsewhere's by their tags, as an administrator does.
func give(t *testing.T, w *region.Region, ids ...string) {
	t.Helper()
	options := backends.Options{Config: ebs.Definition().NewConfig()}
	w.Configure(&options)
	_, err := ec2.NewFromConfig(options.Config.(*ebs.Config).AWS).CreateTags(t.Context(), &ec2.CreateTagsInput{
		Resources: ids,
		Tags:      []types.Tag{{Key: aws.String("ebs.csi.stowage.dev/cluster"), Value: aws.String("elsewhere")}},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestMovedThingsAreLeftAlone gives a volume and its snapshot to another cluster, while the controller of the former
// cluster is running and has seen them.
func TestMovedThingsAreLeftAlone(t *testing.T) {
	for _, call := range []string{
		"delete", "attach", "detach", "expand", "modify", "snapshot", "clone", "restore", "delete snapshot",
	} {
		t.Run(call, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { movedThingsAreLeftAlone(t, call) })
		})
	}
}

func movedThingsAreLeftAlone(t *testing.T, call string) {
	w := region.New(t, region.Quick(), 0)
	d := open(t, w, nil)
	v := d.make("v").Handle
	s, err := d.f.Snapshot.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "s", Volume: v})
	if err != nil {
		t.Fatal(err)
	}
	calls := foreignCalls(d, v, s.Handle)
	if call == "detach" {
		if _, err := d.f.Attach.Attach(t.Context(), region.Request(v, region.NodeA)); err != nil {
			t.Fatal(err)
		}
	}
	give(t, w, v, s.Handle)
	<-time.After(15 * time.Second)
	before := fmt.Sprint(w.Server.Volumes(), w.Server.Snapshots())
	run, ok := calls[call]
	if !ok {
		run = func(ctx context.Context) error { return d.f.Attach.Detach(ctx, v, region.NodeA) }
	}
	if err := run(t.Context()); !backends.Is(err, backends.Denied) || !strings.Contains(err.Error(), "elsewhere") {
		t.Errorf("%v, want Denied with the other cluster", err)
	}
	<-time.After(time.Second)
	if after := fmt.Sprint(w.Server.Volumes(), w.Server.Snapshots()); after != before {
		t.Errorf("there is %s, and was %s", after, before)
	}
}

// TestMovedSnapshotIsNotFound looks for the name of a snapshot that was given to another cluster.
func TestMovedSnapshotIsNotFound(t *testing.T) { synctest.Test(t, movedSnapshotIsNotFound) }

func movedSnapshotIsNotFound(t *testing.T) {
	w := protectable(t, 1)
	d := open(t, w, nil)
	spec := backends.SnapshotSpec{Name: "s", Volume: d.make("v").Handle}
	s, err := d.f.Snapshot.CreateSnapshot(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	give(t, w, s.Handle)
	<-time.After(15 * time.Second)
	spec.Parameters = &ebs.SnapshotParameters{LockMode: "governance", LockDays: 1}
	if found, err := d.f.Snapshot.FindSnapshot(t.Context(), spec); !backends.Is(err, backends.NotFound) {
		t.Errorf("found %+v, %v; want NotFound", found, err)
	}
	if _, mode, _ := w.Server.Protection(s.Handle); mode != "" {
		t.Errorf("it is locked in mode %q", mode)
	}
}

// TestOwnersAreLookedUpTogether deletes volumes that were seen a minute ago: alone, and sixteen at a time.
func TestOwnersAreLookedUpTogether(t *testing.T) {
	for n, most := range map[int]int{1: 1, 16: 8} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { ownersAreLookedUpTogether(t, n, most) })
		})
	}
}

func ownersAreLookedUpTogether(t *testing.T, n, most int) {
	w := region.New(t, region.Quick(), 0)
	d := open(t, w, nil)
	handles := make([]string, n)
	for i := range handles {
		handles[i] = d.make(fmt.Sprint("v", i)).Handle
	}
	<-time.After(time.Minute)
	before := w.Server.Calls()
	var group sync.WaitGroup
	for _, handle := range handles {
		group.Go(func() {
			if err := d.Delete(t.Context(), handle); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	after := w.Server.Calls()
	looks, all := after["DescribeVolumes"]-before["DescribeVolumes"], total(after)-total(before)
	t.Logf("%d deletions: %d looks, %d requests", n, looks, all)
	if looks > most || all != n+looks {
		t.Errorf("%d looks in %d requests, want at most %d in %d", looks, all, most, n+looks)
	}
}

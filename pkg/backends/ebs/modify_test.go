package ebs_test

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/ebs"
	"github.com/stowage-csi/stowage/tests/cloud/region"
)

// TestGrowingAndChangingIsOneRequest grows and changes a volume at about the same time, as two sidecars do.
func TestGrowingAndChangingIsOneRequest(t *testing.T) {
	synctest.Test(t, growingAndChangingIsOneRequest)
}

func growingAndChangingIsOneRequest(t *testing.T) {
	config := region.Quick()
	config.Cooldown = time.Hour
	w := region.New(t, config, 0)
	d := open(t, w, func(c *ebs.Config) { c.Timing.Gather = 100 * time.Millisecond })
	v := d.make("one")
	iops := int64(4000)
	var group sync.WaitGroup
	for _, gib := range []int64{8, 10, 9} {
		group.Go(func() {
			e, err := d.f.Expand.Expand(t.Context(), v.Handle, backends.CapacityRange{RequiredBytes: gib << 30})
			if err != nil || e.CapacityBytes != 10<<30 || !e.NodeExpansion {
				t.Errorf("growing to %d GiB: %+v, %v", gib, e, err)
			}
		})
	}
	group.Go(func() {
		if err := d.f.Modify.Modify(t.Context(), v.Handle, &ebs.Mutable{IOPS: &iops}); err != nil {
			t.Errorf("changing: %v", err)
		}
	})
	group.Wait()
	if n := w.Server.Calls()["ModifyVolume"]; n != 1 {
		t.Errorf("there were %d modifications, want 1", n)
	}
	other := int64(5000)
	// The request itself is valid: Exhausted would make csi-resizer mark the claim infeasible.
	err := d.f.Modify.Modify(t.Context(), v.Handle, &ebs.Mutable{IOPS: &other})
	if !backends.Is(err, backends.InUse) || !strings.Contains(err.Error(), "again later") {
		t.Errorf("changing again too soon: %v, want InUse, and that it goes later", err)
	}
	if _, err = d.f.Expand.Expand(t.Context(), v.Handle,
		backends.CapacityRange{RequiredBytes: 11 << 30}); !backends.Is(err, backends.InUse) {
		t.Errorf("growing again too soon: %v, want InUse", err)
	}
	<-time.After(config.Cooldown)
	if err := d.f.Modify.Modify(t.Context(), v.Handle, &ebs.Mutable{IOPS: &other}); err != nil {
		t.Errorf("changing again later: %v", err)
	}
	wrong := "st1"
	if err := d.f.Modify.Modify(t.Context(), v.Handle,
		&ebs.Mutable{Type: &wrong}); !backends.Is(err, backends.OutOfRange) {
		t.Errorf("to a type that is too large: %v, want OutOfRange", err)
	}
}

// TestIOPSPerGBFollowTheSize changes the operations per GiB of a volume, of one that grows at the same time, and of one
// that has grown while reads are old.
func TestIOPSPerGBFollowTheSize(t *testing.T) { synctest.Test(t, iopsPerGBFollowTheSize) }

func iopsPerGBFollowTheSize(t *testing.T) {
	w := region.New(t, region.Quick(), 0)
	d := open(t, w, func(c *ebs.Config) { c.Timing.Gather = 100 * time.Millisecond })
	v := d.make("one").Handle
	modify := func(perGB int64) {
		kind := "io2"
		if err := d.f.Modify.Modify(within(t, time.Minute), v, &ebs.Mutable{Type: &kind, IOPSPerGB: &perGB}); err != nil {
			t.Errorf("to %d per GiB: %v", perGB, err)
		}
	}
	has := func(when string, gib, iops int) {
		t.Helper()
		if have := w.Server.Volumes()[0]; have.GiB != gib || have.IOPS != iops {
			t.Errorf("%s: it has %d GiB and %d iops, want %d and %d", when, have.GiB, have.IOPS, gib, iops)
		}
	}
	grow := func(gib int64) {
		if _, err := d.f.Expand.Expand(t.Context(), v, backends.CapacityRange{RequiredBytes: gib << 30}); err != nil {
			t.Errorf("to %d GiB: %v", gib, err)
		}
	}
	modify(400)
	has("alone", 4, 1600)
	var group sync.WaitGroup
	group.Go(func() { grow(10) })
	group.Go(func() { modify(500) })
	group.Wait()
	has("while it grows", 10, 5000)
	<-time.After(time.Minute)
	grow(20)
	w.Server.SetLag(5 * time.Second)
	d = open(t, w, nil)
	modify(600)
	has("after it has grown", 20, 12000)
}

// TestWrongChangeKeepsNobodyFromGrowing requests a size, and at the same time a performance that no size allows.
func TestWrongChangeKeepsNobodyFromGrowing(t *testing.T) {
	synctest.Test(t, wrongChangeKeepsNobodyFromGrowing)
}

func wrongChangeKeepsNobodyFromGrowing(t *testing.T) {
	w := region.New(t, region.Quick(), 0)
	d := open(t, w, func(c *ebs.Config) { c.Timing.Gather = 100 * time.Millisecond })
	v := d.make("one")
	iops := int64(80_000)
	var group sync.WaitGroup
	group.Go(func() {
		if e, err := d.f.Expand.Expand(t.Context(), v.Handle, backends.CapacityRange{RequiredBytes: 8 << 30}); err != nil ||
			e.CapacityBytes != 8<<30 {
			t.Errorf("growing: %+v, %v", e, err)
		}
	})
	group.Go(func() {
		if err := d.f.Modify.Modify(t.Context(), v.Handle, &ebs.Mutable{IOPS: &iops}); !backends.Is(err, backends.Invalid) {
			t.Errorf("changing: %v, want Invalid", err)
		}
	})
	group.Wait()
}

// TestOldReadsUndoNoChange changes a volume that reads show as it was before an earlier change.
func TestOldReadsUndoNoChange(t *testing.T) {
	slow, fast := int64(125), int64(300)
	modify := func(throughput *int64) func(d driver, handle string) error {
		return func(d driver, handle string) error {
			return d.f.Modify.Modify(within(d.T, time.Minute), handle, &ebs.Mutable{Throughput: throughput})
		}
	}
	grow := func(d driver, handle string) error {
		e, err := d.f.Expand.Expand(within(d.T, time.Minute), handle, backends.CapacityRange{RequiredBytes: 6 << 30})
		if err == nil && e.CapacityBytes != 6<<30 {
			d.Errorf("it has grown to %+v", e)
		}
		return err
	}
	for name, row := range map[string]struct {
		steps      []func(d driver, handle string) error // before the last one reads become old
		throughput int64
		gib        int
	}{
		"changed there and back": {[]func(driver, string) error{modify(&fast), modify(&slow), modify(&fast)}, fast, 4},
		"changed and grown":      {[]func(driver, string) error{modify(&fast), grow}, fast, 6},
		"grown and changed":      {[]func(driver, string) error{grow, modify(&fast)}, fast, 6},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := region.New(t, region.Quick(), 0)
				d := open(t, w, nil)
				v := d.make("one")
				for i, step := range row.steps {
					<-time.After(30 * time.Second)
					if i == len(row.steps)-1 {
						w.Server.SetLag(40 * time.Second)
						d = open(t, w, nil)
					}
					for err := step(d, v.Handle); err != nil; err = step(d, v.Handle) {
						if !undecided(err) {
							t.Fatal(err)
						}
					}
				}
				<-time.After(time.Minute)
				have := w.Server.Volumes()[0]
				if int64(have.Throughput) != row.throughput || have.GiB != row.gib {
					t.Errorf("it is %+v, want %d MiB/s and %d GiB", have, row.throughput, row.gib)
				}
			})
		})
	}
}

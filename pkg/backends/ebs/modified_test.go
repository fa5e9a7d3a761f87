package ebs_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/ebs"
	fake "github.com/stowage-csi/stowage/tests/cloud/ec2"
	"github.com/stowage-csi/stowage/tests/cloud/faults"
	"github.com/stowage-csi/stowage/tests/cloud/region"
)

// TestOneBadWishFailsNoOther grows and changes a volume in one request, of which EC2 refuses a part.
func TestOneBadWishFailsNoOther(t *testing.T) {
	const roots = 3 // root disks, of 8 GiB and 3000 iops
	for name, row := range map[string]struct {
		limit           func(c *fake.Config)
		growing, faster backends.Kind // the Kinds of their failures
	}{
		"no room for iops":   {limit: func(c *fake.Config) { c.MaxIOPS = roots*3000 + 3500 }, faster: backends.Exhausted},
		"no room for a size": {limit: func(c *fake.Config) { c.MaxGiB = roots*8 + 17 }, growing: backends.Exhausted},
		"for neither": {limit: func(c *fake.Config) { c.MaxIOPS, c.MaxGiB = roots*3000+3500, roots*8+17 },
			growing: backends.Exhausted, faster: backends.Exhausted},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				config := region.Quick()
				config.Cooldown = time.Hour
				row.limit(&config)
				d := open(t, region.New(t, config, 0), func(c *ebs.Config) { c.Timing.Gather = 100 * time.Millisecond })
				iops, spec := int64(4000), region.Spec("one")
				spec.Capacity.RequiredBytes = 16 << 30
				v, err := d.Create(t.Context(), spec)
				if err != nil {
					t.Fatal(err)
				}
				var group sync.WaitGroup
				var growing, faster error
				group.Go(func() {
					_, growing = d.f.Expand.Expand(t.Context(), v.Handle, backends.CapacityRange{RequiredBytes: 18 << 30})
				})
				group.Go(func() { faster = d.f.Modify.Modify(t.Context(), v.Handle, &ebs.Mutable{IOPS: &iops}) })
				group.Wait()
				if !fails(growing, row.growing) {
					t.Errorf("growing: %v, want %v", growing, row.growing)
				}
				if !fails(faster, row.faster) {
					t.Errorf("changing: %v, want %v", faster, row.faster)
				}
			})
		})
	}
}

// TestOldReadsEndNoChange changes a volume back to an earlier state. Reads show that state while EC2 is at work.
func TestOldReadsEndNoChange(t *testing.T) {
	for seed := range uint64(8) { // Each seed makes reads show different instants.
		synctest.Test(t, func(t *testing.T) { oldReadsEndNoChange(t, seed) })
	}
}

func oldReadsEndNoChange(t *testing.T, seed uint64) {
	config := region.Quick()
	config.Modify, config.Unsteady, config.Troubles.Seed = 2*time.Second, true, seed
	w := region.New(t, config, 0)
	d := open(t, w, nil)
	v := d.make("one")
	<-time.After(time.Minute)
	w.Server.SetLag(9 * time.Second)
	for _, throughput := range []int64{300, 125, 300, 125} {
		modify := func() error {
			return d.f.Modify.Modify(within(t, 2*time.Minute), v.Handle, &ebs.Mutable{Throughput: &throughput})
		}
		err := modify()
		for err != nil && undecided(err) {
			err = modify()
		}
		if have := w.Server.Volumes()[0]; err != nil || int64(have.Throughput) != throughput {
			t.Errorf("changed to %d MiB/s with %v, it is %+v", throughput, err, have)
		}
	}
}

// TestChangeWithoutAnAnswerIsFound makes EC2 carry out a request whose answer is lost, while reads show the volume as
// it was before.
func TestChangeWithoutAnAnswerIsFound(t *testing.T) { synctest.Test(t, changeWithoutAnAnswerIsFound) }

func changeWithoutAnAnswerIsFound(t *testing.T) {
	config := region.Quick()
	config.Cooldown = time.Hour
	w := region.New(t, config, 0)
	d := open(t, w, nil)
	v, throughput := d.make("one"), int64(300)
	<-time.After(30 * time.Second)
	w.Proxy.Script(faults.Rule{Action: "ModifyVolume", Times: 1, Kind: faults.LoseReply})
	modify := func() error {
		return d.f.Modify.Modify(within(t, time.Minute), v.Handle, &ebs.Mutable{Throughput: &throughput})
	}
	if err := modify(); !undecided(err) {
		t.Fatalf("changed without an answer: %v", err)
	}
	<-time.After(time.Second)
	w.Server.SetLag(10 * time.Second)
	if err := modify(); err != nil {
		t.Errorf("changed already: %v", err)
	}
}

// TestChangeUnderWayEndsTheCall requests a change while EC2 is still at work on another one, which takes hours. The
// call ends long before its time, because other calls for the volume are turned away meanwhile.
func TestChangeUnderWayEndsTheCall(t *testing.T) { synctest.Test(t, changeUnderWayEndsTheCall) }

func changeUnderWayEndsTheCall(t *testing.T) {
	config := region.Quick()
	config.Optimize = 6 * time.Hour
	w := region.New(t, config, 0)
	d := open(t, w, nil)
	v := d.make("one")
	for _, throughput := range []int64{300, 400} {
		ctx := within(t, time.Hour)
		err := d.f.Modify.Modify(ctx, v.Handle, &ebs.Mutable{Throughput: &throughput})
		if throughput == 300 && err != nil {
			t.Fatal(err)
		}
		if throughput == 400 && (!backends.Is(err, backends.Busy) || ctx.Err() != nil) {
			t.Errorf("%v at its deadline: %t, want Busy before", err, ctx.Err() != nil)
		}
	}
	<-time.After(config.Optimize)
	throughput := int64(400)
	if err := d.f.Modify.Modify(within(t, time.Hour), v.Handle, &ebs.Mutable{Throughput: &throughput}); err != nil {
		t.Errorf("later: %v", err)
	}
}

// TestPanicLeavesNoChange makes a request panic while another caller waits for it with a wish of its own. That wish is
// not in the way of later ones.
func TestPanicLeavesNoChange(t *testing.T) { synctest.Test(t, panicLeavesNoChange) }

func panicLeavesNoChange(t *testing.T) {
	w := region.New(t, region.Quick(), 0)
	var broken atomic.Bool
	d := open(t, w, func(c *ebs.Config) {
		c.AWS.HTTPClient = before{c.AWS.HTTPClient, "ModifyVolume", func() {
			if broken.Load() {
				<-time.After(time.Second)
				panic("boom")
			}
		}}
	})
	v := d.make("one")
	broken.Store(true)
	modify := func(throughput int64) error {
		return d.f.Modify.Modify(within(t, time.Minute), v.Handle, &ebs.Mutable{Throughput: &throughput})
	}
	var group sync.WaitGroup
	for i := range int64(2) {
		group.Go(func() {
			defer func() {
				if recover() == nil {
					t.Error("no panic is passed on")
				}
			}()
			<-time.After(time.Duration(i) * time.Second / 2) // The second one comes while the request is sent.
			_ = modify(300 + 100*i)
		})
	}
	group.Wait()
	broken.Store(false)
	if err := modify(500); err != nil {
		t.Errorf("after it: %v", err)
	}
}

// fails reports whether an error is of the Kind, or nil if the Kind is zero.
func fails(err error, kind backends.Kind) bool {
	var none backends.Kind
	return err == nil && kind == none || err != nil && backends.Is(err, kind)
}

package ebs_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/ebs"
	"github.com/stowage-csi/stowage/pkg/cloud/pace"
	"github.com/stowage-csi/stowage/tests/cloud/faults"
	"github.com/stowage-csi/stowage/tests/cloud/region"
)

// TestLimitCountsWhatIsNotOurs expects 12 attachments to be reduced by 1 for the second interface, 1 for the root disk,
// and the disks of others. It also fills the instance: EC2 refuses exactly the next volume.
func TestLimitCountsWhatIsNotOurs(t *testing.T) { synctest.Test(t, limitCountsWhatIsNotOurs) }

func limitCountsWhatIsNotOurs(t *testing.T) {
	w := region.New(t, region.Quick(), 0)
	for _, row := range []struct {
		edit func(*ebs.Config)
		want int64
	}{
		{nil, 10},
		{func(c *ebs.Config) { c.ReservedAttachments = 2 }, 8},
		{func(c *ebs.Config) { c.VolumeAttachLimit = 20 }, 19},
	} {
		if have, err := open(t, w, row.edit).f.Limit.Limit(t.Context()); have != row.want || err != nil {
			t.Errorf("the limit is %d, %v; want %d", have, err, row.want)
		}
	}
	// An image's own data disk, under a name that the driver chooses last.
	d := open(t, w, nil)
	w.Server.Plug(d.make("data").Handle, region.NodeA, "/dev/sdf")
	have, err := d.f.Limit.Limit(t.Context())
	if have != 9 || err != nil {
		t.Errorf("beside a disk of the instance's own the limit is %d, %v; want 9", have, err)
	}
	for i := range have + 1 {
		v := d.make(fmt.Sprint("volume ", i))
		_, err := d.f.Attach.Attach(t.Context(), region.Request(v.Handle, region.NodeA))
		if full := i == have; full != backends.Is(err, backends.Exhausted) || !full && err != nil {
			t.Errorf("volume %d of %d: %v", i+1, have, err)
		}
	}
}

func TestSourceFindsTheDisk(t *testing.T) { synctest.Test(t, sourceFindsTheDisk) }

func sourceFindsTheDisk(t *testing.T) {
	w := region.New(t, region.Quick(), 0)
	d := open(t, w, nil)
	var last backends.Attachment
	for _, name := range []string{"one", "two"} {
		v := d.make(name)
		w.Path(t, v.Handle)
		attributes, err := d.f.Attach.Attach(t.Context(), region.Request(v.Handle, region.NodeA))
		if err != nil {
			t.Fatal(err)
		}
		last = backends.Attachment{Handle: v.Handle, Type: backends.Mount, Attributes: attributes}
		found, err := d.node.Source(t.Context(), last)
		if err != nil {
			t.Fatal(err)
		}
		want := backends.Device{Path: "/dev/nvme" + map[string]string{"one": "1", "two": "2"}[name] + "n1",
			Identity: backends.Identity{SizeBytes: 4 << 30, Serial: region.Serial(v.Handle)}}
		if found != want {
			t.Errorf("%s is %+v, want %+v", name, found, want)
		}
	}
	// A second disk with the serial number: it is unknown which is the volume.
	w.Double(t, last.Handle)
	if _, err := d.node.Source(t.Context(), last); !backends.Is(err, backends.Unavailable) ||
		!strings.Contains(err.Error(), "/dev/nvme2n1 and /dev/nvme3n1") {
		t.Errorf("two disks with the serial number: %v, want Unavailable and both", err)
	}
	v := d.make("elsewhere")
	attributes, err := d.f.Attach.Attach(t.Context(), region.Request(v.Handle, region.NodeB))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.node.Source(t.Context(),
		backends.Attachment{Handle: v.Handle, Attributes: attributes}); !backends.Is(err, backends.Unavailable) {
		t.Errorf("a disk of another instance: %v, want Unavailable", err)
	}
}

// TestStuckStatesEndWithTheRequest makes EC2 hang in each of the states.
func TestStuckStatesEndWithTheRequest(t *testing.T) { synctest.Test(t, stuckStatesEndWithTheRequest) }

func stuckStatesEndWithTheRequest(t *testing.T) {
	w := region.New(t, region.Quick(), 0)
	d := open(t, w, nil)
	v := d.make("one")
	for _, row := range []struct {
		state string
		call  func(ctx context.Context) error
	}{
		{"creating", func(ctx context.Context) error { _, err := d.Create(ctx, region.Spec("two")); return err }},
		{"attaching", func(ctx context.Context) error {
			_, err := d.f.Attach.Attach(ctx, region.Request(v.Handle, region.NodeA))
			return err
		}},
		{"detaching", func(ctx context.Context) error { return d.f.Attach.Detach(ctx, v.Handle, region.NodeA) }},
	} {
		w.Server.Stick(row.state, true)
		began := time.Now()
		err := row.call(within(t, 200*time.Millisecond))
		if took := time.Since(began); !backends.Is(err, backends.Busy) || took > 1500*time.Millisecond {
			t.Errorf("stuck in %s: %v after %v, want Busy at once", row.state, err, took)
		}
		w.Server.Stick(row.state, false)
		for end := time.Now().Add(10 * time.Second); undecided(err) && time.Now().Before(end); {
			err = row.call(within(t, time.Second))
		}
		if err != nil && !backends.Is(err, backends.Exists) {
			t.Errorf("when it is no longer stuck in %s: %v", row.state, err)
		}
	}
}

// TestDetachingIsNotAttached attaches a volume that is being detached, to the same node and to another one.
func TestDetachingIsNotAttached(t *testing.T) { synctest.Test(t, detachingIsNotAttached) }

func detachingIsNotAttached(t *testing.T) {
	w := region.New(t, region.Quick(), 0)
	d := open(t, w, nil)
	v := d.make("one")
	for _, next := range []string{region.NodeA, region.NodeB} {
		if _, err := d.f.Attach.Attach(t.Context(), region.Request(v.Handle, region.NodeA)); err != nil {
			t.Fatal(err)
		}
		w.Server.Stick("detaching", true)
		if err := d.f.Attach.Detach(within(t, 100*time.Millisecond), v.Handle,
			region.NodeA); !backends.Is(err, backends.Busy) {
			t.Fatalf("stuck: %v, want Busy", err)
		}
		other := open(t, w, nil) // a process that knows nothing of the detachment
		if _, err := other.f.Attach.Attach(within(t, 100*time.Millisecond),
			region.Request(v.Handle, next)); !backends.Is(err, backends.Busy) {
			t.Errorf("attaching it to %s meanwhile: %v, want Busy", next, err)
		}
		err := d.Delete(t.Context(), v.Handle)
		if !backends.Is(err, backends.InUse) || !strings.Contains(err.Error(),
			region.NodeA+": detach it from that instance first") {
			t.Errorf("deleting it meanwhile: %v, want InUse, and the instance that it is to be detached from", err)
		}
		w.Server.Stick("detaching", false)
		if _, err := open(t, w, nil).f.Attach.Attach(t.Context(), region.Request(v.Handle, next)); err != nil {
			t.Errorf("attaching it to %s then: %v", next, err)
		}
		if err := open(t, w, nil).f.Attach.Detach(t.Context(), v.Handle, ""); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWhatWaitsForItsTurnIsNotSentLater makes a detachment wait behind others when its call ends, and lets another
// process take over.
func TestWhatWaitsForItsTurnIsNotSentLater(t *testing.T) {
	synctest.Test(t, whatWaitsForItsTurnIsNotSentLater)
}

func whatWaitsForItsTurnIsNotSentLater(t *testing.T) {
	w := region.New(t, region.Quick(), 0)
	d := open(t, w, func(c *ebs.Config) {
		c.Timing.Call = 30 * time.Second
		c.Rates["DetachVolume"] = pace.Limit{Burst: 1, PerSecond: 0.05}
	})
	v, other := d.make("one").Handle, d.make("other").Handle
	for _, handle := range []string{v, other} {
		if _, err := d.f.Attach.Attach(t.Context(), region.Request(handle, region.NodeA)); err != nil {
			t.Fatal(err)
		}
	}
	<-time.After(time.Minute) // EC2 shows the attachment.
	if err := d.f.Attach.Detach(t.Context(), other, region.NodeA); err != nil {
		t.Fatal(err)
	}
	if err := d.f.Attach.Detach(within(t, time.Second), v, region.NodeA); !backends.Is(err, backends.Busy) {
		t.Fatalf("behind another: %v, want Busy", err)
	}
	next := open(t, w, nil)
	if err := next.f.Attach.Detach(t.Context(), v, region.NodeA); err != nil {
		t.Fatal(err)
	}
	if _, err := next.f.Attach.Attach(t.Context(), region.Request(v, region.NodeA)); err != nil {
		t.Fatal(err)
	}
	<-time.After(time.Minute)
	for _, have := range w.Server.Volumes() {
		if have.ID == v && have.Instances[region.NodeA] != "attached" {
			t.Errorf("it was attached, and is %+v", have)
		}
	}
}

// TestRefusedForItsRateIsNotWaitedFor makes EC2 refuse an attachment for its rate, and then a detachment.
func TestRefusedForItsRateIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, refusedForItsRateIsNotWaitedFor)
}

func refusedForItsRateIsNotWaitedFor(t *testing.T) {
	w := region.New(t, region.Quick(), 0)
	d := open(t, w, func(c *ebs.Config) { c.Timing.Settle = 2 * time.Minute })
	v := d.make("one").Handle
	attach := func() error {
		_, err := d.f.Attach.Attach(within(t, time.Minute), region.Request(v, region.NodeA))
		return err
	}
	detach := func() error { return d.f.Attach.Detach(within(t, time.Minute), v, region.NodeA) }
	w.Proxy.Script(faults.Rule{Action: "AttachVolume", Kind: faults.Throttle})
	if err := attach(); !undecided(err) {
		t.Fatalf("refused for the rate: %v, want Busy", err)
	}
	w.Proxy.Stop()
	if err := detach(); err != nil {
		t.Errorf("detached from where it was never attached with %v", err)
	}
	if err := attach(); err != nil {
		t.Fatal(err)
	}
	w.Proxy.Script(faults.Rule{Action: "DetachVolume", Kind: faults.Throttle})
	if err := detach(); !undecided(err) {
		t.Fatalf("refused for the rate: %v, want Busy", err)
	}
	w.Proxy.Stop()
	if err := detach(); err != nil {
		t.Fatal(err)
	}
	if err := attach(); err != nil {
		t.Errorf("attached again with %v", err)
	}
}

package ebs_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/ebs"
	fake "github.com/stowage-csi/stowage/tests/cloud/ec2"
	"github.com/stowage-csi/stowage/tests/cloud/faults"
)

// driver is a process that runs the backend.
type driver struct {
	*testing.T
	backends.Backend
	f    backends.Features
	node backends.NodeBackend
}

func (w *world) open(t *testing.T, edit func(*ebs.Config)) driver {
	t.Helper()
	d := ebs.Definition()
	options := backends.Options{Driver: "ebs.csi.stowage.dev", DataDir: t.TempDir(), Config: d.NewConfig(), Log: slog.New(slog.DiscardHandler)}
	w.configure(&options)
	if edit != nil {
		edit(options.Config.(*ebs.Config))
	}
	instance, err := d.Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	return driver{t, instance.Controller, backends.Resolve(instance.Controller, instance.Node), instance.Node}
}

func (d driver) make(name string) *backends.Volume {
	d.Helper()
	v, err := d.Create(d.Context(), spec(name))
	if err != nil {
		d.Fatal(err)
	}
	return v
}

// within bounds a call.
func within(t *testing.T, limit time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

func TestOptionsAreChecked(t *testing.T) {
	d := ebs.Definition()
	w := newWorld(t, quick(), 0)
	for name, edit := range map[string]func(*backends.Options){
		"no region":          func(o *backends.Options) { o.Config.(*ebs.Config).AWS.Region = "" },
		"no credentials":     func(o *backends.Options) { o.Config.(*ebs.Config).AWS.Credentials = nil },
		"a wrong node ID":    func(o *backends.Options) { o.NodeID = "node-1" },
		"less than no slots": func(o *backends.Options) { o.Config.(*ebs.Config).ReservedAttachments = -1 },
		"another's config":   func(o *backends.Options) { o.Config = 1 },
	} {
		options := backends.Options{Driver: "ebs.csi.stowage.dev", Config: d.NewConfig(), Log: slog.New(slog.DiscardHandler)}
		w.configure(&options)
		edit(&options)
		if _, err := d.Open(t.Context(), options); !backends.Is(err, backends.Invalid) {
			t.Errorf("%s: got %v, want Invalid", name, err)
		}
	}
}

// TestLostReplyIsFoundAgain loses the answer to CreateVolume, ends the process, and hides the volume for a while.
func TestLostReplyIsFoundAgain(t *testing.T) {
	w := newWorld(t, quick(), 0)
	w.proxy.Script(faults.Rule{Action: "CreateVolume", Kind: faults.LoseReply})
	_, err := w.open(t, nil).Create(within(t, 5*time.Second), spec("one"))
	if !undecided(err) {
		t.Fatalf("without an answer: %v, want Busy or Unavailable", err)
	}
	w.proxy.Stop()
	w.server.SetLag(time.Hour)
	d := w.open(t, nil)
	if _, err := d.Create(within(t, 300*time.Millisecond), spec("one")); !backends.Is(err, backends.Busy) {
		t.Errorf("while the volume is hidden: %v, want Busy", err)
	}
	w.server.SetLag(0)
	d = w.open(t, nil)
	if _, err := d.Create(t.Context(), spec("one")); !backends.Is(err, backends.Exists) || len(w.server.Volumes()) != 1 {
		t.Errorf("afterwards: %v and %d volumes; want Exists and 1", err, len(w.server.Volumes()))
	}
}

// TestFinalFailureAfterLostReplyIsNotFinal has EC2 refuse, for good, a request of which an earlier one may have succeeded.
func TestFinalFailureAfterLostReplyIsNotFinal(t *testing.T) {
	config := quick()
	config.MaxVolumes = 4 // three of them root disks
	w := newWorld(t, config, 0)
	w.proxy.Script(faults.Rule{Action: "CreateVolume", Kind: faults.LoseRequest, Times: 1})
	d := w.open(t, nil)
	d.make("fills the quota")
	w.proxy.Script(faults.Rule{Action: "CreateVolume", Kind: faults.LoseRequest, Times: 1})
	if _, err := d.Create(t.Context(), spec("one")); !backends.Is(err, backends.Unavailable) {
		t.Errorf("over the quota after a lost request: %v, want Unavailable", err)
	}
	if _, err := d.Create(t.Context(), spec("one")); !backends.Is(err, backends.Exhausted) {
		t.Errorf("over the quota: %v, want Exhausted", err)
	}
}

// TestAsynchronousFailureTurnsTheToken lets a volume end in error after EC2 has accepted it.
func TestAsynchronousFailureTurnsTheToken(t *testing.T) {
	w := newWorld(t, quick(), 0)
	w.server.Doom(1)
	d := w.open(t, nil)
	if _, err := d.Create(t.Context(), spec("one")); !backends.Is(err, backends.Unavailable) {
		t.Errorf("a volume that ends in error: %v, want Unavailable", err)
	}
	v := d.make("one")
	if left := w.server.Volumes(); len(left) != 1 || left[0].ID != v.Handle {
		t.Errorf("there are %+v, want only %s", left, v.Handle)
	}
}

// TestTokensAfterRestart deletes a volume and makes another one of the name in a process that knows nothing of the first.
func TestTokensAfterRestart(t *testing.T) {
	w := newWorld(t, quick(), 0)
	first := w.open(t, nil).make("one")
	for round := range 3 {
		d := w.open(t, nil)
		if err := d.Delete(t.Context(), first.Handle); err != nil {
			t.Fatal(err)
		}
		larger := spec("one")
		larger.Capacity.RequiredBytes += int64(round) << 30
		again, err := w.open(t, nil).Create(t.Context(), larger)
		if err != nil || again.Handle == first.Handle || again.CapacityBytes != larger.Capacity.RequiredBytes {
			t.Fatalf("made again: %+v, %v", again, err)
		}
		first = again
	}
}

// TestTokensAfterRestartInShortCalls makes another volume of a deleted one's name, in a new process, by calls none of which
// lasts as long as it takes to be certain that the first volume is gone.
func TestTokensAfterRestartInShortCalls(t *testing.T) {
	w := newWorld(t, quick(), 0)
	if err := w.open(t, nil).Delete(t.Context(), w.open(t, nil).make("one").Handle); err != nil {
		t.Fatal(err)
	}
	larger := spec("one")
	larger.Capacity.RequiredBytes *= 2
	d := w.open(t, nil)
	err := backends.Errorf(backends.Busy, "not asked")
	calls := 0
	for end := time.Now().Add(10 * time.Second); undecided(err) && time.Now().Before(end); calls++ {
		_, err = d.Create(within(t, 100*time.Millisecond), larger)
		<-time.After(10 * time.Millisecond)
	}
	if (err != nil && !backends.Is(err, backends.Exists)) || calls < 3 || len(w.server.Volumes()) != 1 {
		t.Errorf("after %d calls: %v, and there are %d volumes; want 1", calls, err, len(w.server.Volumes()))
	}
}

// TestGrowingAndChangingIsOneRequest grows and changes a volume at about the same time, as two sidecars do.
func TestGrowingAndChangingIsOneRequest(t *testing.T) {
	config := quick()
	config.Cooldown = time.Hour
	w := newWorld(t, config, 0)
	d := w.open(t, func(c *ebs.Config) { c.Timing.Gather = 100 * time.Millisecond })
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
	if n := w.server.Calls()["ModifyVolume"]; n != 1 {
		t.Errorf("there were %d modifications, want 1", n)
	}
	other := int64(5000)
	err := d.f.Modify.Modify(t.Context(), v.Handle, &ebs.Mutable{IOPS: &other})
	if !backends.Is(err, backends.Exhausted) {
		t.Errorf("changing again too soon: %v, want Exhausted", err)
	}
	wrong := "st1"
	if err := d.f.Modify.Modify(t.Context(), v.Handle, &ebs.Mutable{Type: &wrong}); !backends.Is(err, backends.OutOfRange) {
		t.Errorf("to a type that is too large: %v, want OutOfRange", err)
	}
}

// TestWrongChangeKeepsNobodyFromGrowing asks at once for a size and for a performance that no size allows.
func TestWrongChangeKeepsNobodyFromGrowing(t *testing.T) {
	w := newWorld(t, quick(), 0)
	d := w.open(t, func(c *ebs.Config) { c.Timing.Gather = 100 * time.Millisecond })
	v := d.make("one")
	iops := int64(80_000)
	var group sync.WaitGroup
	group.Go(func() {
		if e, err := d.f.Expand.Expand(t.Context(), v.Handle, backends.CapacityRange{RequiredBytes: 8 << 30}); err != nil || e.CapacityBytes != 8<<30 {
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

func TestZones(t *testing.T) {
	w := newWorld(t, quick(), 0)
	d := w.open(t, nil)
	here := backends.Topology{"topology.ebs.csi.stowage.dev/zone": "region-1b"}
	for name, where := range map[string]backends.TopologyRequirement{
		"required": {Requisite: []backends.Topology{here}},
		"preferred of two": {
			Requisite: []backends.Topology{{"topology.kubernetes.io/zone": "region-1a"}, {"topology.kubernetes.io/zone": "region-1b"}},
			Preferred: []backends.Topology{here},
		},
	} {
		s := spec(name)
		s.Topology = where
		v, err := d.Create(t.Context(), s)
		if err != nil || len(v.Topology) != 1 || !v.Topology[0].Within(here) || v.Topology[0]["topology.kubernetes.io/zone"] != "region-1b" {
			t.Errorf("%s: %+v, %v", name, v, err)
			continue
		}
		_, err = d.f.Attach.Attach(t.Context(), request(v.Handle, nodeA))
		if !backends.Is(err, backends.Invalid) || !strings.Contains(err.Error(), "zone") {
			t.Errorf("attaching it in another zone: %v, want Invalid because of the zone", err)
		}
		if _, err := d.f.Attach.Attach(t.Context(), request(v.Handle, nodeC)); err != nil {
			t.Errorf("attaching it in its zone: %v", err)
		}
	}
	s := spec("a clone elsewhere")
	source := d.make("source").Handle
	s.Topology.Requisite = []backends.Topology{here}
	if _, err := d.f.Clone.Clone(t.Context(), s, source); !backends.Is(err, backends.Exhausted) {
		t.Errorf("a clone in another zone than its source: %v, want Exhausted", err)
	}
}

// TestLimitCountsWhatIsNotOurs expects of 12 attachments 2 for interfaces, 1 for the root disk and those of strangers.
func TestLimitCountsWhatIsNotOurs(t *testing.T) {
	w := newWorld(t, quick(), 0)
	for _, row := range []struct {
		edit func(*ebs.Config)
		want int64
	}{
		{nil, 9},
		{func(c *ebs.Config) { c.ReservedAttachments = 2 }, 7},
		{func(c *ebs.Config) { c.VolumeAttachLimit = 20 }, 19},
	} {
		if have, err := w.open(t, row.edit).f.Limit.Limit(t.Context()); have != row.want || err != nil {
			t.Errorf("the limit is %d, %v; want %d", have, err, row.want)
		}
	}
}

func TestSourceFindsTheDisk(t *testing.T) {
	w := newWorld(t, quick(), 0)
	d := w.open(t, nil)
	var last backends.Source
	for _, name := range []string{"one", "two"} {
		v := d.make(name)
		w.path(t, v.Handle)
		attributes, err := d.f.Attach.Attach(t.Context(), request(v.Handle, nodeA))
		if err != nil {
			t.Fatal(err)
		}
		if last, err = d.node.Source(t.Context(), backends.Attachment{Handle: v.Handle, Type: backends.Mount, Attributes: attributes}); err != nil {
			t.Fatal(err)
		}
		want := backends.Device{Path: "/dev/nvme" + map[string]string{"one": "1", "two": "2"}[name] + "n1", Identity: backends.Identity{SizeBytes: 4 << 30, Serial: serial(v.Handle)}}
		if last != want {
			t.Errorf("%s is %+v, want %+v", name, last, want)
		}
	}
	v := d.make("elsewhere")
	attributes, err := d.f.Attach.Attach(t.Context(), request(v.Handle, nodeB))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.node.Source(t.Context(), backends.Attachment{Handle: v.Handle, Attributes: attributes}); !backends.Is(err, backends.Unavailable) {
		t.Errorf("a disk of another instance: %v, want Unavailable", err)
	}
}

// TestReadOnlyAttachmentIsRemembered is about what EC2 has no place for.
func TestReadOnlyAttachmentIsRemembered(t *testing.T) {
	w := newWorld(t, quick(), 0)
	v := w.open(t, nil).make("one")
	r := request(v.Handle, nodeA)
	r.ReadOnly = true
	if _, err := w.open(t, nil).f.Attach.Attach(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	d := w.open(t, nil)
	if _, err := d.f.Attach.Attach(t.Context(), request(v.Handle, nodeA)); !backends.Is(err, backends.Exists) {
		t.Errorf("in the other way after a restart: %v, want Exists", err)
	}
	if err := d.f.Attach.Detach(t.Context(), v.Handle, ""); err != nil {
		t.Fatal(err)
	}
	for key := range w.server.Volumes()[0].Tags {
		if strings.Contains(key, "read-only") {
			t.Errorf("the tag %s is left", key)
		}
	}
}

// TestStuckStatesEndWithTheRequest has EC2 hang in each of the states.
func TestStuckStatesEndWithTheRequest(t *testing.T) {
	w := newWorld(t, quick(), 0)
	d := w.open(t, nil)
	v := d.make("one")
	for _, row := range []struct {
		state string
		call  func(ctx context.Context) error
	}{
		{"creating", func(ctx context.Context) error { _, err := d.Create(ctx, spec("two")); return err }},
		{"attaching", func(ctx context.Context) error {
			_, err := d.f.Attach.Attach(ctx, request(v.Handle, nodeA))
			return err
		}},
		{"detaching", func(ctx context.Context) error { return d.f.Attach.Detach(ctx, v.Handle, nodeA) }},
	} {
		w.server.Stick(row.state, true)
		began := time.Now()
		err := row.call(within(t, 200*time.Millisecond))
		if took := time.Since(began); !backends.Is(err, backends.Busy) || took > patience {
			t.Errorf("stuck in %s: %v after %v, want Busy at once", row.state, err, took)
		}
		w.server.Stick(row.state, false)
		for end := time.Now().Add(10 * time.Second); undecided(err) && time.Now().Before(end); {
			err = row.call(within(t, time.Second))
		}
		if err != nil && !backends.Is(err, backends.Exists) {
			t.Errorf("when it is no longer stuck in %s: %v", row.state, err)
		}
	}
}

// TestDetachingIsNotAttached attaches again what is on its way out, to the node that it leaves and to another one.
func TestDetachingIsNotAttached(t *testing.T) {
	w := newWorld(t, quick(), 0)
	d := w.open(t, nil)
	v := d.make("one")
	for _, next := range []string{nodeA, nodeB} {
		if _, err := d.f.Attach.Attach(t.Context(), request(v.Handle, nodeA)); err != nil {
			t.Fatal(err)
		}
		w.server.Stick("detaching", true)
		if err := d.f.Attach.Detach(within(t, 100*time.Millisecond), v.Handle, nodeA); !backends.Is(err, backends.Busy) {
			t.Fatalf("stuck: %v, want Busy", err)
		}
		other := w.open(t, nil) // knows nothing of it
		if _, err := other.f.Attach.Attach(within(t, 100*time.Millisecond), request(v.Handle, next)); !backends.Is(err, backends.Busy) {
			t.Errorf("attaching it to %s meanwhile: %v, want Busy", next, err)
		}
		if err := d.Delete(t.Context(), v.Handle); !backends.Is(err, backends.InUse) {
			t.Errorf("deleting it meanwhile: %v, want InUse", err)
		}
		w.server.Stick("detaching", false)
		if _, err := w.open(t, nil).f.Attach.Attach(t.Context(), request(v.Handle, next)); err != nil {
			t.Errorf("attaching it to %s then: %v", next, err)
		}
		if err := w.open(t, nil).f.Attach.Detach(t.Context(), v.Handle, ""); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSnapshotTwinsGoTogether has a request for a snapshot arrive twice.
func TestSnapshotTwinsGoTogether(t *testing.T) {
	w := newWorld(t, quick(), 0)
	d := w.open(t, nil)
	v := d.make("one")
	w.proxy.Script(faults.Rule{Action: "CreateSnapshot", Times: 1, Kind: faults.Duplicate})
	twin, err := d.f.Snapshot.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "twin", Volume: v.Handle})
	if err != nil || len(w.server.Snapshots()) != 2 {
		t.Fatalf("got %v and %d snapshots; want 2", err, len(w.server.Snapshots()))
	}
	other, err := d.f.Snapshot.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "other", Volume: v.Handle})
	if err != nil {
		t.Fatal(err)
	}
	if found, err := w.open(t, nil).f.Snapshot.FindSnapshot(t.Context(), backends.SnapshotSpec{Name: "twin"}); err != nil || found.Handle != twin.Handle {
		t.Errorf("found again is %+v, %v; want %s", found, err, twin.Handle)
	}
	if err := d.f.Snapshot.DeleteSnapshot(t.Context(), twin.Handle); err != nil {
		t.Fatal(err)
	}
	if left := w.server.Snapshots(); len(left) != 1 || left[other.Handle] == nil {
		t.Errorf("there are %v, want only %s", left, other.Handle)
	}
}

// TestCallsAreShared counts EC2's requests for one volume alone and for many at a time.
func TestCallsAreShared(t *testing.T) {
	config := quick()
	config.Types["m5.tiny"] = fake.InstanceType{MaxAttachments: 100}
	w := newWorld(t, config, 0)
	d := w.open(t, nil)
	round := func(name string, n int) (calls int) {
		before := total(w.server.Calls())
		var group sync.WaitGroup
		for i := range n {
			group.Go(func() {
				v := d.make(fmt.Sprint(name, i))
				if _, err := d.f.Attach.Attach(t.Context(), request(v.Handle, nodeA)); err != nil {
					t.Error(err)
				}
				if err := d.f.Attach.Detach(t.Context(), v.Handle, nodeA); err != nil {
					t.Error(err)
				}
				if err := d.Delete(t.Context(), v.Handle); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		return total(w.server.Calls()) - before
	}
	round("first", 1)
	one, many := round("alone", 1), round("many", 32)
	t.Logf("create, attach, detach and delete: %d requests for one volume alone, %.1f a volume for 32 at a time", one, float64(many)/32)
	if one > 20 || many > 32*9 {
		t.Errorf("%d requests for one volume and %d for 32, want at most 20 and %d", one, many, 32*9)
	}
}

func total(calls map[string]int) (n int) {
	for _, count := range calls {
		n += count
	}
	return n
}

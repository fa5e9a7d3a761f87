package ebs_test

import (
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/tests/cloud/faults"
	"github.com/stowage-csi/stowage/tests/cloud/region"
)

// TestLostReplyIsFoundAgain loses the answer to CreateVolume, ends the process, and hides the volume for a while.
func TestLostReplyIsFoundAgain(t *testing.T) { synctest.Test(t, lostReplyIsFoundAgain) }

func lostReplyIsFoundAgain(t *testing.T) {
	w := region.New(t, region.Quick(), 0)
	w.Proxy.Script(faults.Rule{Action: "CreateVolume", Kind: faults.LoseReply})
	_, err := open(t, w, nil).Create(within(t, 5*time.Second), region.Spec("one"))
	if !undecided(err) {
		t.Fatalf("without an answer: %v, want Busy or Unavailable", err)
	}
	w.Proxy.Stop()
	w.Server.SetLag(time.Hour)
	d := open(t, w, nil)
	if _, err := d.Create(within(t, 300*time.Millisecond), region.Spec("one")); !backends.Is(err, backends.Busy) {
		t.Errorf("while the volume is hidden: %v, want Busy", err)
	}
	w.Server.SetLag(0)
	d = open(t, w, nil)
	if _, err := d.Create(t.Context(), region.Spec("one")); !backends.Is(err, backends.Exists) ||
		len(w.Server.Volumes()) != 1 {
		t.Errorf("afterwards: %v and %d volumes; want Exists and 1", err, len(w.Server.Volumes()))
	}
}

// TestFinalFailureAfterLostReplyIsNotFinal makes EC2 refuse a request finally, although an earlier one may have
// succeeded.
func TestFinalFailureAfterLostReplyIsNotFinal(t *testing.T) {
	synctest.Test(t, finalFailureAfterLostReplyIsNotFinal)
}

func finalFailureAfterLostReplyIsNotFinal(t *testing.T) {
	config := region.Quick()
	config.MaxVolumes = 4 // three of them root disks
	w := region.New(t, config, 0)
	w.Proxy.Script(faults.Rule{Action: "CreateVolume", Kind: faults.LoseRequest, Times: 1})
	d := open(t, w, nil)
	d.make("fills the quota")
	w.Proxy.Script(faults.Rule{Action: "CreateVolume", Kind: faults.LoseRequest, Times: 1})
	if _, err := d.Create(t.Context(), region.Spec("one")); !backends.Is(err, backends.Unavailable) {
		t.Errorf("over the quota after a lost request: %v, want Unavailable", err)
	}
	<-time.After(time.Minute) // EC2 would show it.
	if _, err := d.Create(t.Context(), region.Spec("one")); !backends.Is(err, backends.Exhausted) {
		t.Errorf("over the quota: %v, want Exhausted", err)
	}
}

// TestLateCreationIsNotLeaked makes a request arrive after its call has ended, and after EC2 has finally refused others
// of the name.
func TestLateCreationIsNotLeaked(t *testing.T) { synctest.Test(t, lateCreationIsNotLeaked) }

func lateCreationIsNotLeaked(t *testing.T) {
	config := region.Quick()
	config.MaxVolumes = 4 // three of them root disks
	w := region.New(t, config, 0)
	d := open(t, w, nil)
	full := d.make("fills the quota")
	w.Proxy.Script(faults.Rule{Action: "CreateVolume", Kind: faults.Delay, Delay: 8 * time.Second, Times: 1})
	for range 2 {
		if _, err := d.Create(within(t, 3*time.Second), region.Spec("one")); !backends.Is(err, backends.Unavailable) {
			t.Errorf("refused, while another request is on its way: %v, want Unavailable", err)
		}
	}
	if err := d.Delete(t.Context(), full.Handle); err != nil {
		t.Fatal(err)
	}
	<-time.After(time.Minute)
	if _, err := d.Create(t.Context(), region.Spec("one")); !backends.Is(err, backends.Exists) ||
		len(w.Server.Volumes()) != 1 {
		t.Errorf("asked for again: %v, want Exists; there are %+v", err, w.Server.Volumes())
	}
}

// TestAsynchronousFailureTurnsTheToken makes a volume end in error after EC2 has accepted it.
func TestAsynchronousFailureTurnsTheToken(t *testing.T) {
	synctest.Test(t, asynchronousFailureTurnsTheToken)
}

func asynchronousFailureTurnsTheToken(t *testing.T) {
	w := region.New(t, region.Quick(), 0)
	w.Server.Doom(1)
	d := open(t, w, nil)
	if _, err := d.Create(t.Context(), region.Spec("one")); !backends.Is(err, backends.Unavailable) {
		t.Errorf("a volume that ends in error: %v, want Unavailable", err)
	}
	v := d.make("one")
	if left := w.Server.Volumes(); len(left) != 1 || left[0].ID != v.Handle {
		t.Errorf("there are %+v, want only %s", left, v.Handle)
	}
}

// TestFailureIsRemovedLater makes EC2 refuse, for the rate, to delete a volume that ended in error.
func TestFailureIsRemovedLater(t *testing.T) { synctest.Test(t, failureIsRemovedLater) }

func failureIsRemovedLater(t *testing.T) {
	w := region.New(t, region.Quick(), 0)
	w.Server.Doom(1)
	w.Proxy.Script(faults.Rule{Action: "DeleteVolume", Kind: faults.Throttle})
	d := open(t, w, nil)
	if _, err := d.Create(t.Context(), region.Spec("one")); !backends.Is(err, backends.Unavailable) {
		t.Errorf("a volume that ends in error: %v, want Unavailable", err)
	}
	w.Proxy.Stop()
	var v *backends.Volume
	err := backends.Errorf(backends.Busy, "not asked")
	for end := time.Now().Add(time.Minute); undecided(err) && time.Now().Before(end); {
		v, err = d.Create(t.Context(), region.Spec("one"))
	}
	<-time.After(time.Second) // The deleted volume is gone.
	if left := w.Server.Volumes(); err != nil || len(left) != 1 || left[0].ID != v.Handle {
		t.Errorf("made again: %v; there are %+v", err, left)
	}
}

// TestFailureIsNotFound looks for a volume that no call waits for, while its creation fails.
func TestFailureIsNotFound(t *testing.T) { synctest.Test(t, failureIsNotFound) }

func failureIsNotFound(t *testing.T) {
	w := region.New(t, region.Quick(), 0)
	w.Server.Doom(1)
	if _, err := open(t, w, nil).Create(within(t, time.Millisecond),
		region.Spec("one")); !backends.Is(err, backends.Busy) {
		t.Fatalf("a request that ends: %v, want Busy", err)
	}
	d := open(t, w, nil)
	if v, err := d.Find(t.Context(), region.Spec("one")); !backends.Is(err, backends.Unavailable) {
		t.Errorf("found while it is made: %+v, %v; want Unavailable", v, err)
	}
	<-time.After(time.Second)
	if v, err := d.Find(t.Context(), region.Spec("one")); !backends.Is(err, backends.NotFound) ||
		len(w.Server.Volumes()) != 0 {
		t.Errorf("found later: %+v, %v; want NotFound and nothing left of it", v, err)
	}
}

// TestTokensAfterRestart deletes a volume and creates another one of the name in a process that does not know the
// first.
func TestTokensAfterRestart(t *testing.T) { synctest.Test(t, tokensAfterRestart) }

func tokensAfterRestart(t *testing.T) {
	w := region.New(t, region.Quick(), 0)
	first := open(t, w, nil).make("one")
	for round := range 3 {
		d := open(t, w, nil)
		if err := d.Delete(t.Context(), first.Handle); err != nil {
			t.Fatal(err)
		}
		larger := region.Spec("one")
		larger.Capacity.RequiredBytes += int64(round) << 30
		again, err := open(t, w, nil).Create(t.Context(), larger)
		if err != nil || again.Handle == first.Handle || again.CapacityBytes != larger.Capacity.RequiredBytes {
			t.Fatalf("made again: %+v, %v", again, err)
		}
		first = again
	}
}

// TestTokensAfterRestartInShortCalls creates another volume of a deleted one's name, in a new process. Each of its
// calls is too short to be certain that the first volume is gone.
func TestTokensAfterRestartInShortCalls(t *testing.T) {
	synctest.Test(t, tokensAfterRestartInShortCalls)
}

func tokensAfterRestartInShortCalls(t *testing.T) {
	w := region.New(t, region.Quick(), 0)
	if err := open(t, w, nil).Delete(t.Context(), open(t, w, nil).make("one").Handle); err != nil {
		t.Fatal(err)
	}
	larger := region.Spec("one")
	larger.Capacity.RequiredBytes *= 2
	d := open(t, w, nil)
	err := backends.Errorf(backends.Busy, "not asked")
	calls := 0
	for end := time.Now().Add(time.Minute); undecided(err) && time.Now().Before(end); calls++ {
		_, err = d.Create(within(t, 100*time.Millisecond), larger)
		<-time.After(10 * time.Millisecond)
	}
	if (err != nil && !backends.Is(err, backends.Exists)) || calls < 3 || len(w.Server.Volumes()) != 1 {
		t.Errorf("after %d calls: %v, and there are %d volumes; want 1", calls, err, len(w.Server.Volumes()))
	}
}

// TestFailedVolumeOfAnotherRequestIsReplaced makes EC2 refuse a token that was used for another volume. EC2 has given
// up that volume, and shows it late.
func TestFailedVolumeOfAnotherRequestIsReplaced(t *testing.T) {
	synctest.Test(t, failedVolumeOfAnotherRequestIsReplaced)
}

func failedVolumeOfAnotherRequestIsReplaced(t *testing.T) {
	w := region.New(t, region.Quick(), 0)
	w.Server.Doom(1)
	if _, err := open(t, w, nil).Create(within(t, time.Millisecond), region.Spec("v")); !undecided(err) {
		t.Fatal(err)
	}
	<-time.After(time.Second)
	w.Server.SetLag(3 * time.Second)
	larger := region.Spec("v")
	larger.Capacity.RequiredBytes *= 2
	d := open(t, w, nil)
	v, err := d.Create(t.Context(), larger)
	if backends.Is(err, backends.Exists) {
		t.Errorf("what EC2 has given up is said to be there: %v", err)
	}
	for end := time.Now().Add(time.Minute); undecided(err) && time.Now().Before(end); {
		v, err = d.Create(t.Context(), larger)
	}
	if err != nil || len(w.Server.Volumes()) != 1 || w.Server.Volumes()[0].ID != v.Handle {
		t.Errorf("made anew with %v; there are %+v", err, w.Server.Volumes())
	}
}

// TestUnansweredLooksFreeNoToken makes EC2 refuse a token that was used for another volume, and then not show anything:
// neither the volume, nor that there is none.
func TestUnansweredLooksFreeNoToken(t *testing.T) { synctest.Test(t, unansweredLooksFreeNoToken) }

func unansweredLooksFreeNoToken(t *testing.T) {
	w := region.New(t, region.Quick(), 0)
	w.Server.SetLag(time.Hour)
	if _, err := open(t, w, nil).Create(within(t, time.Millisecond), region.Spec("v")); !undecided(err) {
		t.Fatal(err)
	}
	<-time.After(time.Second)
	larger := region.Spec("v")
	larger.Capacity.RequiredBytes *= 2
	d := open(t, w, nil)
	w.Proxy.Script(faults.Rule{Action: "DescribeVolumes", Skip: 1, Kind: faults.Fail})
	// The call ends by itself. A second volume would never be shown to it.
	if v, err := d.Create(within(t, 2*time.Minute), larger); !undecided(err) {
		t.Errorf("got %+v with %v, want Busy or Unavailable", v, err)
	}
	if n := len(w.Server.Volumes()); n != 1 {
		t.Errorf("there are %d volumes, want 1", n)
	}
	w.Proxy.Stop()
	w.Server.SetLag(0)
	if v, err := d.Create(t.Context(), larger); !backends.Is(err, backends.Exists) {
		t.Errorf("when EC2 shows the volume: got %+v with %v, want Exists", v, err)
	}
}

func TestZones(t *testing.T) { synctest.Test(t, zones) }

func zones(t *testing.T) {
	w := region.New(t, region.Quick(), 0)
	d := open(t, w, nil)
	here := backends.Topology{"topology.ebs.csi.stowage.dev/zone": "region-1b"}
	// by new nodes too, whose labels an autoscaler predicts
	reachable := []backends.Topology{{"topology.kubernetes.io/zone": "region-1b"}}
	for name, where := range map[string]backends.TopologyRequirement{
		"required": {Requisite: []backends.Topology{here}},
		"preferred of two": {
			Requisite: []backends.Topology{{"topology.kubernetes.io/zone": "region-1a"},
				{"topology.kubernetes.io/zone": "region-1b"}},
			Preferred: []backends.Topology{here},
		},
	} {
		s := region.Spec(name)
		s.Topology = where
		v, err := d.Create(t.Context(), s)
		if err != nil || !reflect.DeepEqual(v.Topology, reachable) {
			t.Errorf("%s: %+v, %v", name, v, err)
			continue
		}
		_, err = d.f.Attach.Attach(t.Context(), region.Request(v.Handle, region.NodeA))
		if !backends.Is(err, backends.Invalid) || !strings.Contains(err.Error(), "zone") {
			t.Errorf("attaching it in another zone: %v, want Invalid because of the zone", err)
		}
		if _, err := d.f.Attach.Attach(t.Context(), region.Request(v.Handle, region.NodeC)); err != nil {
			t.Errorf("attaching it in its zone: %v", err)
		}
	}
	s := region.Spec("a clone elsewhere")
	source := d.make("source").Handle
	s.Topology.Requisite = []backends.Topology{here}
	if _, err := d.f.Clone.Clone(t.Context(), s, source); !backends.Is(err, backends.Exhausted) {
		t.Errorf("a clone in another zone than its source: %v, want Exhausted", err)
	}
}

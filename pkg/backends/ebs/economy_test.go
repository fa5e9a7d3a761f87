package ebs_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	fake "github.com/stowage-csi/stowage/tests/cloud/ec2"
	"github.com/stowage-csi/stowage/tests/cloud/region"
)

// TestCallsAreShared counts the requests to EC2 for one volume alone and for many at a time.
func TestCallsAreShared(t *testing.T) { synctest.Test(t, callsAreShared) }

func callsAreShared(t *testing.T) {
	config := region.Quick()
	config.Types["m5.tiny"] = fake.InstanceType{MaxAttachments: 100}
	w := region.New(t, config, 0)
	d := open(t, w, nil)
	round := func(name string, n int) (calls int) {
		before := total(w.Server.Calls())
		var group sync.WaitGroup
		for i := range n {
			group.Go(func() {
				v := d.make(fmt.Sprint(name, i))
				if _, err := d.f.Attach.Attach(t.Context(), region.Request(v.Handle, region.NodeA)); err != nil {
					t.Error(err)
				}
				if err := d.f.Attach.Detach(t.Context(), v.Handle, region.NodeA); err != nil {
					t.Error(err)
				}
				if err := d.Delete(t.Context(), v.Handle); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		return total(w.Server.Calls()) - before
	}
	round("first", 1)
	one, many := round("alone", 1), round("many", 32)
	t.Logf("create, attach, detach and delete: %d requests for one volume alone, %.1f a volume for 32 at a time", one,
		float64(many)/32)
	if one > 20 || many > 32*9 {
		t.Errorf("%d requests for one volume and %d for 32, want at most 20 and %d", one, many, 32*9)
	}
}

// TestDetachmentIsOneRequest detaches a volume that was attached long ago.
func TestDetachmentIsOneRequest(t *testing.T) {
	for name, other := range map[string]bool{"the process that has attached it": false, "a new leader": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { detachmentIsOneRequest(t, other) })
		})
	}
}

func detachmentIsOneRequest(t *testing.T, other bool) {
	w := region.New(t, region.Quick(), 0)
	d := open(t, w, nil)
	v := d.make("one")
	if _, err := d.f.Attach.Attach(t.Context(), region.Request(v.Handle, region.NodeA)); err != nil {
		t.Fatal(err)
	}
	<-time.After(time.Minute)
	if other {
		d = open(t, w, nil)
	}
	if err := d.f.Attach.Detach(t.Context(), v.Handle, region.NodeA); err != nil {
		t.Fatal(err)
	}
	if n := w.Server.Calls()["DetachVolume"]; n != 1 {
		t.Errorf("%d requests for DetachVolume, want 1", n)
	}
}

func total(calls map[string]int) (n int) {
	for _, count := range calls {
		n += count
	}
	return n
}

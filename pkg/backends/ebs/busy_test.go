package ebs_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/tests/cloud/region"
)

// TestBusyVolumeIsAttached detaches a volume that its instance does not release. Until it does, the volume is neither
// detached nor attached elsewhere.
func TestBusyVolumeIsAttached(t *testing.T) { synctest.Test(t, busyVolumeIsAttached) }

func busyVolumeIsAttached(t *testing.T) {
	w := region.New(t, region.Quick(), 0)
	d := open(t, w, nil)
	v := d.make("v").Handle
	attach := func(node string) error {
		_, err := d.f.Attach.Attach(within(t, time.Second), region.Request(v, node))
		return err
	}
	detach := func() error { return d.f.Attach.Detach(within(t, time.Second), v, region.NodeA) }
	if err := attach(region.NodeA); err != nil {
		t.Fatal(err)
	}
	<-time.After(time.Minute)
	w.Server.Use(v, true)
	for range 2 {
		if err := detach(); !undecided(err) {
			t.Errorf("detached while it is in use: got %v, want Busy or Unavailable", err)
		}
		if state := w.Server.Volumes()[0].Instances[region.NodeA]; state != "busy" {
			t.Errorf("the attachment is %q, want busy", state)
		}
	}
	if err := attach(region.NodeB); !backends.Is(err, backends.Busy) {
		t.Errorf("attached elsewhere while it is in use: got %v, want Busy", err)
	}
	if err := d.Delete(within(t, time.Second), v); !backends.Is(err, backends.InUse) {
		t.Errorf("deleted while it is in use: got %v, want InUse", err)
	}
	w.Server.Use(v, false)
	<-time.After(time.Minute)
	if err := detach(); err != nil || len(w.Server.Volumes()[0].Instances) != 0 {
		t.Errorf("released: got %v, and it is %+v", err, w.Server.Volumes()[0])
	}
	if err := attach(region.NodeB); err != nil {
		t.Errorf("attached elsewhere: %v", err)
	}
}

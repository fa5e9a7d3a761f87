package ebs

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/tests/cloud/faults"
	"github.com/stowage-csi/stowage/tests/cloud/region"
)

// TestLateDeletionIsWaitedFor delays the first deletion request until the second one has been refused, because the
// volume is in use. The caller must wait until the first is refused as well before the volume is detached.
func TestLateDeletionIsWaitedFor(t *testing.T) {
	for _, delay := range []time.Duration{5 * time.Second, 20 * time.Second, longest - time.Second} {
		t.Run(fmt.Sprint(delay), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { lateDeletionIsWaitedFor(t, delay) })
		})
	}
}

func lateDeletionIsWaitedFor(t *testing.T, delay time.Duration) {
	s := newStorm(t, weather{}, 1)
	if err := patiently(s.instance.Load(), 0); err != nil {
		t.Fatal(err)
	}
	c := s.instance.Load().Controller
	attacher := c.(backends.Attacher)
	spec := region.Spec("one")
	v, err := c.Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := attacher.Attach(t.Context(),
		backends.AttachRequest{Handle: v.Handle, Node: region.NodeA, Access: spec.Access}); err != nil {
		t.Fatal(err)
	}
	s.Proxy.Script(faults.Rule{Action: "DeleteVolume", Times: 1, Kind: faults.Delay, Delay: delay})
	if err := c.Delete(t.Context(), v.Handle); !backends.Is(err, backends.InUse) {
		t.Errorf("deleting what is attached: %v, want InUse", err)
	}
	if err := attacher.Detach(t.Context(), v.Handle, region.NodeA); err != nil {
		t.Error(err)
	}
	<-time.After(2 * longest)
	if _, err := c.Get(t.Context(), v.Handle); err != nil {
		t.Errorf("the volume of which the deletion was refused: %v", err)
	}
}

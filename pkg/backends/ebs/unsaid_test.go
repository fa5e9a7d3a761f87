package ebs_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/tests/cloud/faults"
	"github.com/stowage-csi/stowage/tests/cloud/region"
)

// TestNoAnswerBringsNoVolumeBack makes another process delete a volume that this process has seen. Reads no longer show
// it, and EC2 does not answer whether it exists.
func TestNoAnswerBringsNoVolumeBack(t *testing.T) { synctest.Test(t, noAnswerBringsNoVolumeBack) }

func noAnswerBringsNoVolumeBack(t *testing.T) {
	w := region.New(t, region.Quick(), 0)
	d, standby := open(t, w, nil), open(t, w, nil)
	v := d.make("v")
	if _, err := standby.Get(t.Context(), v.Handle); err != nil {
		t.Fatal(err)
	}
	<-time.After(time.Minute)
	if err := d.Delete(t.Context(), v.Handle); err != nil {
		t.Fatal(err)
	}
	<-time.After(time.Second)
	w.Proxy.Script(faults.Rule{Action: "DeleteTags", Kind: faults.LoseRequest})
	if got, err := standby.Get(t.Context(), v.Handle); !undecided(err) {
		t.Errorf("got %+v with %v, want Busy or Unavailable", got, err)
	}
	w.Proxy.Stop()
	if got, err := standby.Get(t.Context(), v.Handle); !backends.Is(err, backends.NotFound) {
		t.Errorf("got %+v with %v, want NotFound", got, err)
	}
}

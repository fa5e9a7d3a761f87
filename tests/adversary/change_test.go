package adversary

import (
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

// TestAttachedVolumeIsNotDeleted deletes a volume of a cloud while it is attached, and after it was detached behind the
// schedule's back, so that the deletion succeeds.
func TestAttachedVolumeIsNotDeleted(t *testing.T) {
	w, err := newWorld(t, overStrictAPI(), NewTally(), nil, patient())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.close(); err != nil {
			t.Error(err)
		}
	})
	a := newActor(w, 0, nil)
	for _, s := range []Step{{Op: Create, MiB: 8}, {Op: Use}, {Op: Delete}} {
		a.step(s)
	}
	v := a.volumes[0]
	if v == nil || len(w.wrong) > 0 || w.tally.Codes["FailedPrecondition"] != 1 {
		t.Fatalf("got the volume %v, %q and the codes %s, want one refusal to delete it", v, w.wrong, counted(w.tally.Codes))
	}
	if _, err := a.controls().ControllerUnpublishVolume(t.Context(),
		&csi.ControllerUnpublishVolumeRequest{VolumeId: v.id, NodeId: w.setup.node()}); err != nil {
		t.Fatal(err)
	}
	if a.step(Step{Op: Delete}); len(w.wrong) == 0 || class(w.wrong[0]) != "deleted in use" {
		t.Errorf("got %q, want a violation: deleted in use", w.wrong)
	}
}

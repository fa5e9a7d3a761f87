package ebs

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

// A disk is pulled while a pod uses it, by the hypervisor or without any notice. The pod's volume can be unstaged,
// attached again and used, and the pod's synced data is still there.
func TestDiskIsPulled(t *testing.T) {
	for _, way := range []struct {
		name   string
		served bool
	}{{"ejected", false}, {"torn away", true}} {
		t.Run(way.name, func(t *testing.T) {
			forms(t, func(t *testing.T, fsType string) {
				pulled(newInstance(t, func(i *instance) { i.served = way.served }).newVolume("pulled", fsType))
			})
		})
	}
}

func pulled(v *volume) {
	v.attach()
	v.show()
	written := v.write()
	v.spill()
	v.unwell(false)
	v.tear(v.id)
	v.unwell(true)
	began := time.Now()
	v.putAway()
	v.Logf("taken down in %v", time.Since(began).Round(time.Millisecond))
	v.nothing()
	v.detach()
	v.attach()
	v.show()
	v.verify(written)
	written = v.write()

	// Again, but only unpublished: the staging is replaced.
	v.unpublish()
	v.tear(v.id)
	v.detach()
	v.attach()
	v.show()
	v.verify(written)
	v.putAway()
	v.nothing()
}

// spill writes data that is not synced, and may be lost.
func (v *volume) spill() {
	v.Helper()
	if v.raw() {
		return
	}
	text := make([]byte, recordSize)
	_, _ = rand.Read(text) // it never fails
	v.must(os.WriteFile(filepath.Join(v.target, "spilled"), text, 0o600))
}

// unwell fails the test unless the volume's health is INACCESSIBLE if want is true, and without a fault otherwise.
func (v *volume) unwell(want bool) {
	v.Helper()
	answer, err := v.node.NodeGetVolumeHealth(v.ctx(),
		&csi.NodeGetVolumeHealthRequest{VolumeId: v.id, VolumePublishPath: v.target, StagingTargetPath: v.staging})
	v.must(err)
	found := answer.GetVolumeHealth().GetHealthStatuses()
	v.Logf("its health is %v", found)
	gone := slices.ContainsFunc(found, func(e *csi.VolumeHealth_VolumeHealthEntry) bool {
		return e.GetStatus() == csi.VolumeHealthErrorType_INACCESSIBLE
	})
	if gone != want || !want && len(found) > 0 {
		v.Errorf("its health is %v, want it to be inaccessible: %v", found, want)
	}
}

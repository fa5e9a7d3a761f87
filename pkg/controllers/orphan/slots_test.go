package orphan

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/controllers/csiclient"
)

// TestVolumeThatIsAdoptedMeanwhile checks that a volume stays if a PersistentVolume is created for it while another
// leaked volume is deleted.
func TestVolumeThatIsAdoptedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLeak(t)
		s.storage.volumes = []csiclient.Listed{{Handle: "a"}, {Handle: "left-0"}, {Handle: "left-1"}}
		for i := range 20 {
			handle := fmt.Sprintf("known-%d", i)
			s.create(volumeOf(handle))
			s.storage.volumes = append(s.storage.volumes, csiclient.Listed{Handle: handle})
		}
		s.storage.meet = func(string) {
			s.storage.meet = nil
			s.create(volumeOf("left-1"))
		}
		if err := s.days(2); err != nil {
			t.Error(err)
		}
		s.wantDeleted("left-0")
	})
}

// setWith returns a PersistentVolumeSet of a driver with an open slot.
func setWith(driver string) *v1alpha1.PersistentVolumeSet {
	return &v1alpha1.PersistentVolumeSet{
		ObjectMeta: metav1.ObjectMeta{Name: "pool"},
		Status:     v1alpha1.PersistentVolumeSetStatus{Driver: driver, Slots: []v1alpha1.VolumeSlot{{Name: "pvs-1"}}},
	}
}

// TestVolumeOfAnOpenSlotStays checks that a volume stays while it may be that of a slot, whose PersistentVolume the
// API server refuses, and that the sweep says so.
func TestVolumeOfAnOpenSlotStays(t *testing.T) {
	for _, driver := range []string{"ebs.csi.example", ""} {
		t.Run(driver, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newLeak(t)
				set := setWith(driver)
				s.create(set)
				err := s.days(2)
				s.wantDeleted()
				if err == nil || !strings.Contains(err.Error(), "it may be that of the slot pvs-1") {
					t.Errorf("the last sweep ends with %v", err)
				}
				if err := s.api.Delete(t.Context(), set); err != nil {
					t.Fatal(err)
				}
				s.sweeps(1)
				s.wantDeleted("b")
			})
		})
	}
}

// TestSlotsOfOtherVolumes checks that a slot does not keep a volume that was leaked before the slot was written, nor
// the slot of another driver's set.
func TestSlotsOfOtherVolumes(t *testing.T) {
	for name, c := range map[string]struct {
		driver string
		sweeps int // before the set is written
	}{
		"younger than the leak": {"ebs.csi.example", 1},
		"of another driver":     {"local.csi.example", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newLeak(t)
				s.sweeps(c.sweeps)
				<-time.After(time.Minute)
				s.create(setWith(c.driver))
				if err := s.days(1); err != nil {
					t.Error(err)
				}
				s.wantDeleted("b")
			})
		})
	}
}

package binder

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// waiting sets the class's volume binding mode to WaitForFirstConsumer.
func (w *world) waiting() {
	w.Helper()
	class := &storagev1.StorageClass{}
	w.must(w.api.Get(w.Context(), client.ObjectKey{Name: "fast"}, class))
	class.VolumeBindingMode = ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)
	w.must(w.api.Update(w.Context(), class))
}

// TestSchedulerBegins checks that the claim gets the scheduler's volume, which the binder would not have chosen, with
// any number of writes of Kubernetes' controller before any write of the binder.
func TestSchedulerBegins(t *testing.T) {
	for at := range 4 {
		for steps := range 4 {
			t.Run(fmt.Sprintf("%d more writes before write %d", steps, at), func(t *testing.T) {
				w := newWorld(t, newClaim(), newVolume("v"), newVolume("w", of("3Gi")))
				w.waiting()
				w.rest("c")
				if w.writes > 0 {
					t.Fatalf("before the scheduler's choice, %d writes were made", w.writes)
				}
				w.must(w.step("w", "c", 0))
				kubernetes := func() {
					for number := range steps {
						if w.step("w", "c", number+1) != nil {
							return
						}
					}
				}
				w.before = func(write int) {
					if write == at {
						kubernetes()
					}
				}
				if at == 0 {
					kubernetes()
				}
				w.rest("c")
				w.isBound("c")
				if got := w.claim("c").Spec.VolumeName; got != "w" {
					t.Errorf("the claim has %s, and the scheduler chose w", got)
				}
			})
		}
	}
}

// TestClaimThatNoVolumeFits checks, for each rule of Kubernetes or the set about a claim and for both binding modes,
// that nothing is written although a volume is ready, and that the volume stays free for the next claim.
func TestClaimThatNoVolumeFits(t *testing.T) {
	group := "snapshot.storage.k8s.io"
	for name, change := range map[string]func(*pvc){
		"a data source": func(c *pvc) {
			c.Spec.DataSource = &corev1.TypedLocalObjectReference{APIGroup: &group, Kind: "VolumeSnapshot", Name: "s"}
		},
		"a reference to a data source": func(c *pvc) {
			c.Spec.DataSourceRef = &corev1.TypedObjectReference{Kind: "PersistentVolumeClaim", Name: "s"}
		},
		"a selector": func(c *pvc) {
			c.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"disk": "x"}}
		},
		"a class of attributes": func(c *pvc) { c.Spec.VolumeAttributesClassName = ptr.To("gold") },
		"another volume mode":   func(c *pvc) { c.Spec.VolumeMode = ptr.To(corev1.PersistentVolumeBlock) },
		"another access mode": func(c *pvc) {
			c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
		},
	} {
		for _, waits := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, waiting %t", name, waits), func(t *testing.T) {
				w := newWorld(t, newClaim(change), newClaim(func(c *pvc) { c.Name, c.UID = "d", "d-uid" }), newVolume("v"))
				if waits {
					w.waiting()
				}
				w.rest("c")
				if w.writes > 0 {
					t.Errorf("%d writes were made", w.writes)
				}
				if waits {
					w.must(w.step("v", "d", 0))
				}
				w.rest("d")
				w.isBound("d")
			})
		}
	}
}

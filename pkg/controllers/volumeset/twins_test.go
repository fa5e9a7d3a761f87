package volumeset

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// TestTwins checks that two sets that select each other's volumes come to rest with the volumes of the elder one.
// Without yielding, each would create volumes that the other deletes.
func TestTwins(t *testing.T) {
	elder, younger := stored(), stored()
	elder.CreationTimestamp = metav1.Unix(1000, 0)
	younger.Name, younger.UID, younger.CreationTimestamp = "a-twin", "twin-uid", metav1.Unix(2000, 0)
	for _, set := range []*v1alpha1.PersistentVolumeSet{elder, younger} {
		set.Spec.MaximumReplicas = 2
	}
	var deletions []func() error // not yet visible in the other set's cache
	r, driver := bench(t, interceptor.Funcs{
		Delete: func(_ context.Context, c client.WithWatch, o client.Object, _ ...client.DeleteOption) error {
			deletions = append(deletions, func() error { return c.Delete(t.Context(), o) })
			return nil
		},
	}, fast(), elder, younger)
	made := 0
	for round := range 20 {
		for _, name := range []string{younger.Name, elder.Name} {
			request := ctrl.Request{NamespacedName: types.NamespacedName{Name: name}}
			if _, err := r.Reconcile(t.Context(), request); err != nil {
				t.Fatal(err)
			}
		}
		for _, do := range deletions {
			if err := do(); client.IgnoreNotFound(err) != nil {
				t.Fatal(err)
			}
		}
		deletions = nil
		r.fillAll(t)
		if round == 10 {
			made = driver.created
		}
	}
	if driver.created != made || made > 2 {
		t.Errorf("the driver was asked for %d volumes, then for %d; want 2 in all", made, driver.created)
	}
	if set := r.look(t); reason(set) != reasonFilled {
		t.Errorf("the elder set: %+v", set.Status)
	}
	if err := r.client.Get(t.Context(), client.ObjectKeyFromObject(younger), younger); err != nil {
		t.Fatal(err)
	}
	if len(younger.Status.Slots) > 0 {
		t.Errorf("the younger set: %+v", younger.Status)
	}
}

// fillAll does all due work: it creates the volumes of slots, makes volumes Available as Kubernetes does, and removes
// deleted ones.
func (r *reconciler) fillAll(t *testing.T) {
	t.Helper()
	var sets v1alpha1.PersistentVolumeSetList
	var all corev1.PersistentVolumeList
	if err := r.client.List(t.Context(), &sets); err != nil {
		t.Fatal(err)
	}
	for i := range sets.Items {
		for _, slot := range sets.Items[i].Status.Slots {
			if _, err := r.filler.attempt(t.Context(), slotKey{set: sets.Items[i].Name, slot: slot.Name}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := r.client.List(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	for i := range all.Items {
		v := &all.Items[i]
		if v.DeletionTimestamp != nil {
			v.Finalizers = nil
			if err := r.client.Update(t.Context(), v); err != nil {
				t.Fatal(err)
			}
			continue
		}
		v.Status.Phase = corev1.VolumeAvailable
		if err := r.client.Status().Update(t.Context(), v); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWhoYields checks which sets create nothing because of another, and that they name it.
func TestWhoYields(t *testing.T) {
	more := map[string]v1alpha1.LabelValue{"pool": "a", "tier": "x"}
	for name, c := range map[string]struct {
		change func(set, other *v1alpha1.PersistentVolumeSet)
		yields bool
	}{
		"the younger of two twins": {func(set, _ *v1alpha1.PersistentVolumeSet) {
			set.CreationTimestamp = metav1.Unix(2000, 0)
		}, true},
		"the elder": {func(_, other *v1alpha1.PersistentVolumeSet) {
			other.CreationTimestamp = metav1.Unix(2000, 0)
		}, false},
		"the second by name of the same second": {func(_, _ *v1alpha1.PersistentVolumeSet) {}, true},
		"beside one that is being deleted": {func(set, other *v1alpha1.PersistentVolumeSet) {
			leaving(other)
			set.CreationTimestamp = metav1.Unix(2000, 0)
		}, false},
		"beside one whose volumes it counts": {func(set, other *v1alpha1.PersistentVolumeSet) {
			set.CreationTimestamp, other.Spec.Selector, other.Spec.Template.Metadata.Labels = metav1.Unix(2000, 0), more, more
		}, false},
		"beside one that counts its volumes": {func(set, _ *v1alpha1.PersistentVolumeSet) {
			set.CreationTimestamp, set.Spec.Selector, set.Spec.Template.Metadata.Labels = metav1.Unix(2000, 0), more, more
		}, false},
		"beside a stranger": {func(set, other *v1alpha1.PersistentVolumeSet) {
			set.CreationTimestamp = metav1.Unix(2000, 0)
			other.Spec.Selector = map[string]v1alpha1.LabelValue{"pool": "b"}
			other.Spec.Template.Metadata.Labels = other.Spec.Selector
		}, false},
	} {
		set, other := stored(), stored()
		other.Name, other.UID = "elder", "elder-uid"
		set.CreationTimestamp, other.CreationTimestamp = metav1.Unix(1000, 0), metav1.Unix(1000, 0)
		c.change(set, other)
		r, _ := bench(t, interceptor.Funcs{}, fast(), set, other)
		set = r.look(t)
		if isTwin := reason(set) == reasonTwin; isTwin != c.yields || (len(set.Status.Slots) == 0) != c.yields {
			t.Errorf("%s: it yields: %t, want %t: %+v", name, isTwin, c.yields, set.Status)
		}
		if c.yields && !strings.Contains(set.Status.Conditions[0].Message, "PersistentVolumeSet elder,") {
			t.Errorf("%s: %s", name, set.Status.Conditions[0].Message)
		}
	}
}

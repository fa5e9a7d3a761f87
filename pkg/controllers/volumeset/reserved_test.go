package volumeset

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// TestReservedVolumeThatIsDeleted checks that a deleted PersistentVolume that is reserved for a claim goes, and that
// its volume is not deleted before Kubernetes has seen that no claim can be bound to it.
func TestReservedVolumeThatIsDeleted(t *testing.T) {
	for words, deleted := range map[string]int{
		"x:reserved:deleting":        1,
		"x:reserved:retain:deleting": 0, // Its policy was Delete before.
	} {
		for _, namespace := range []string{"team", ""} {
			v := described(t, stored(), words)[0]
			v.Finalizers, v.Spec.ClaimRef.Namespace = []string{v1alpha1.VolumeSetFinalizer}, namespace
			r, driver := bench(t, interceptor.Funcs{}, v)
			remove := removing(r, driver, time.Minute)
			look := func() error {
				t.Helper()
				request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(v)}
				if _, err := remove.Reconcile(t.Context(), request); err != nil {
					t.Fatal(err)
				}
				v = &corev1.PersistentVolume{}
				return r.client.Get(t.Context(), request.NamespacedName, v)
			}
			for range 2 {
				if err := look(); err != nil {
					t.Fatalf("%s: it goes while a claim may be bound to it: %v", words, err)
				}
			}
			if ref := v.Spec.ClaimRef; ref.UID == "" || ref.Name == "claim" || ref.Namespace == "" || driver.deleted > 0 {
				t.Errorf("%s: it is for the claim %+v, and %d volumes were deleted: Kubernetes waits for the claim", words, ref,
					driver.deleted)
			}
			v.Status.Phase = corev1.VolumeReleased
			if err := r.client.Status().Update(t.Context(), v); err != nil {
				t.Fatal(err)
			}
			if err := look(); !apierrors.IsNotFound(err) || driver.deleted != deleted {
				t.Errorf("%s: once it is released, it has the finalizers %q (%v), and %d volumes are deleted, want %d", words,
					v.Finalizers, err, driver.deleted, deleted)
			}
		}
	}
}

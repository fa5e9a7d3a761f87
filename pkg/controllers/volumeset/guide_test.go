package volumeset

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// wayOut returns the guide's patch to remove a finalizer.
func wayOut(t *testing.T, of string) []byte {
	t.Helper()
	text, err := os.ReadFile("../../../docs/guides/volume-sets.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "## Take the manager away\n")
	patch := regexp.MustCompile("`kubectl patch " + of + " NAME --type=merge -p '([^'`]+)'`")
	command := patch.FindStringSubmatch(section)
	if command == nil || !strings.Contains(section, "`"+v1alpha1.VolumeSetFinalizer+"`") {
		t.Fatal("the guide does not say how the finalizer is taken away")
	}
	return []byte(command[1])
}

// TestManagerTakenAway checks the guide's statements about a manager that is removed before its sets: the deletion of
// an unbound volume hangs. The guide's patch lets the object go and leaves the volume to the person who applied it,
// even when the manager returns. A returning manager finishes the deletion of a volume that was not patched.
func TestManagerTakenAway(t *testing.T) {
	for name, c := range map[string]struct {
		patch   []byte
		deleted int // volumes, by the manager
	}{
		"its finalizer is taken away": {wayOut(t, "pv"), 0},
		"the manager comes back":      {nil, 1},
	} {
		set := stored()
		r, driver := bench(t, interceptor.Funcs{}, set, fast(), described(t, set, "x:available")[0])
		v := &corev1.PersistentVolume{}
		v.Name = "x"
		get := func() error { return r.client.Get(t.Context(), client.ObjectKeyFromObject(v), v) }
		if err := r.client.Delete(t.Context(), v); err != nil {
			t.Fatal(err)
		}
		if err := get(); err != nil || v.DeletionTimestamp == nil {
			t.Fatalf("%s: without a manager a deleted volume does not hang: %v", name, err)
		}
		if c.patch != nil {
			if err := r.client.Patch(t.Context(), v, client.RawPatch(types.MergePatchType, c.patch)); err != nil {
				t.Fatal(err)
			}
			if err := get(); !apierrors.IsNotFound(err) {
				t.Errorf("%s: the volume still hangs with %q: %v", name, v.Finalizers, err)
			}
		}
		remove := removing(r, driver, r.filler.timeout)
		if _, err := remove.Reconcile(t.Context(), ctrl.Request{
			NamespacedName: types.NamespacedName{Name: "x"},
		}); err != nil {
			t.Fatal(err)
		}
		if err := get(); !apierrors.IsNotFound(err) || driver.deleted != c.deleted {
			t.Errorf("%s: %v, and %d volumes were deleted, want %d", name, err, driver.deleted, c.deleted)
		}
		if now := r.look(t); len(now.Status.Slots) != 2 || slotOf(now, "x") != nil {
			t.Errorf("%s: the set has the slots %+v, want two others", name, now.Status.Slots)
		}
	}
}

// TestSetWithoutManager checks the guide's statements about a set that is deleted without its manager: its deletion
// hangs, it names the volumes that may have been created for it, and it goes with the guide's patch.
func TestSetWithoutManager(t *testing.T) {
	r, driver := bench(t, interceptor.Funcs{}, fast(), stored(making("x")))
	set := &v1alpha1.PersistentVolumeSet{}
	get := func() error { return r.client.Get(t.Context(), types.NamespacedName{Name: "set"}, set) }
	err := errors.Join(get(), r.client.Delete(t.Context(), set), get())
	if err != nil || set.DeletionTimestamp == nil || slotOf(set, "x") == nil {
		t.Fatalf("without a manager a deleted set does not hang with its slots: %v, %+v", err, set.Status)
	}
	if err := r.client.Patch(t.Context(), set, client.RawPatch(types.MergePatchType, wayOut(t, "pvset"))); err != nil {
		t.Fatal(err)
	}
	if err := get(); !apierrors.IsNotFound(err) {
		t.Errorf("the set still hangs with %q: %v", set.Finalizers, err)
	}
	if now := r.look(t); now.Name != "" || driver.created > 0 { // The manager returns.
		t.Errorf("there is the set %+v, and %d volumes were asked for", now, driver.created)
	}
}

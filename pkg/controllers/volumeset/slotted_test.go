package volumeset

import (
	"context"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// TestKeptVolumeIsNotOfferedAgain checks that a volume of policy Retain is not offered again if its PersistentVolume
// was bound, released and deleted before its slot ended: it has the data of its claim.
func TestKeptVolumeIsNotOfferedAgain(t *testing.T) {
	set := stored(func(set *v1alpha1.PersistentVolumeSet) {
		set.Spec.MinimumReplicas, set.Spec.MaximumReplicas = 1, 1
		set.Spec.Template.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	})
	first, driver := bench(t, interceptor.Funcs{}, set, fast())
	first.name = func() string { return "x" }
	key := slotKey{set: "set", slot: "x"}
	first.look(t)
	if _, err := first.filler.attempt(t.Context(), key); err != nil || driver.created != 1 {
		t.Fatalf("%v; the driver was asked %d times, want once", err, driver.created)
	}
	v := &corev1.PersistentVolume{}
	v.Name = "x"
	get := func() error { return first.client.Get(t.Context(), client.ObjectKeyFromObject(v), v) }
	used := func() error {
		v.Spec.ClaimRef = &corev1.ObjectReference{Name: "claim", UID: "claim-uid"}
		if err := first.client.Update(t.Context(), v); err != nil {
			return err
		}
		v.Status.Phase = corev1.VolumeReleased
		return first.client.Status().Update(t.Context(), v)
	}
	for _, step := range []func() error{get, used, func() error { return first.client.Delete(t.Context(), v) }} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	second, remove := newParts(first.client, first.client, benchOptions(driver), &events.FakeRecorder{}, func(string) {})
	t.Cleanup(second.filler.queue.ShutDown)
	second.filler.fresh, remove.fresh = time.Hour, time.Hour
	end := func() {
		t.Helper()
		if _, err := remove.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(v)}); err != nil {
			t.Fatal(err)
		}
	}
	end()
	second.look(t) // This takes over the slot.
	if _, err := second.filler.attempt(t.Context(), key); err != nil || driver.created != 1 {
		t.Errorf("%v; the driver was asked for the volume of x %d times, want once", err, driver.created)
	}
	if now := second.look(t); slotOf(now, "x") != nil {
		t.Errorf("the slot of x stays: %+v", now.Status.Slots)
	}
	end()
	if err := get(); !apierrors.IsNotFound(err) {
		t.Errorf("the PersistentVolume of x hangs with %q: %v", v.Finalizers, err)
	}
}

// blinded returns a client whose lists show the sets without slots, or no sets.
func blinded(c client.Client, hasSets bool) client.Client {
	return interceptor.NewClient(c.(client.WithWatch), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, into client.ObjectList, options ...client.ListOption) error {
			err := c.List(ctx, into, options...)
			list, ok := into.(*v1alpha1.PersistentVolumeSetList)
			if !ok {
				return err
			}
			if !hasSets {
				list.Items = nil
			}
			for i := range list.Items {
				list.Items[i].Status.Slots = nil
			}
			return err
		},
	})
}

// TestFinalizersStayWithTheSlot checks that no PersistentVolume whose volume stays loses our last finalizer while its
// slot is there, whatever the cache shows, and that each loses it afterwards.
func TestFinalizersStayWithTheSlot(t *testing.T) {
	for words, finalizers := range map[string][]string{
		"x:bound":                    {v1alpha1.VolumeSetFinalizer, provisionerFinalizer},
		"x:available:retain":         {v1alpha1.VolumeSlotFinalizer},
		"x:bound:retain":             {v1alpha1.VolumeSlotFinalizer},
		"x:released:retain:deleting": {v1alpha1.VolumeSlotFinalizer},
	} {
		for _, shows := range []string{"the slot", "no slot", "no set"} {
			set := stored(making("x"))
			v := described(t, set, words)[0]
			v.Finalizers = slices.Clone(finalizers)
			r, driver := bench(t, interceptor.Funcs{}, set, v)
			remove := removing(r, driver, time.Minute)
			if shows != "the slot" {
				remove.client = blinded(r.client, shows == "no slot")
			}
			look := func() (*corev1.PersistentVolume, ctrl.Result) {
				t.Helper()
				result, err := remove.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(v)})
				if err != nil {
					t.Fatal(err)
				}
				now := &corev1.PersistentVolume{}
				if err = r.client.Get(t.Context(), client.ObjectKeyFromObject(v), now); client.IgnoreNotFound(err) != nil {
					t.Fatal(err)
				}
				return now, result
			}
			now, result := look()
			if !slices.Equal(now.Finalizers, finalizers) || driver.deleted > 0 || result.RequeueAfter == 0 {
				t.Errorf("%s, and the cache shows %s: with its slot it has the finalizers %q, %d volumes were deleted, and "+
					"the next look is after %v", words, shows, now.Finalizers, driver.deleted, result.RequeueAfter)
			}
			if err := r.client.Get(t.Context(), client.ObjectKeyFromObject(set), set); err != nil {
				t.Fatal(err)
			}
			set.Status.Slots = nil
			if err := r.client.Status().Update(t.Context(), set); err != nil {
				t.Fatal(err)
			}
			now, _ = look()
			if controllerutil.ContainsFinalizer(now, v1alpha1.VolumeSetFinalizer) ||
				controllerutil.ContainsFinalizer(now, v1alpha1.VolumeSlotFinalizer) {
				t.Errorf("%s, and the cache shows %s: without its slot it has the finalizers %q", words, shows,
					now.Finalizers)
			}
		}
	}
}

// TestPolicyThatChanges checks that a PersistentVolume of policy Retain that gets the policy Delete loses the finalizer
// of its slot, and that its volume stays: nobody has deleted it.
func TestPolicyThatChanges(t *testing.T) {
	v := described(t, stored(), "x:available")[0]
	v.Finalizers = []string{v1alpha1.VolumeSlotFinalizer}
	for _, more := range [][]string{nil, {v1alpha1.VolumeSetFinalizer}} { // The binder gives it back.
		one := v.DeepCopy()
		one.Finalizers = append(one.Finalizers, more...)
		r, driver := bench(t, interceptor.Funcs{}, one)
		remove := removing(r, driver, time.Minute)
		request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(one)}
		if _, err := remove.Reconcile(t.Context(), request); err != nil {
			t.Fatal(err)
		}
		if err := r.client.Get(t.Context(), client.ObjectKeyFromObject(one), one); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(one.Finalizers, more) || driver.deleted > 0 {
			t.Errorf("it has the finalizers %q, want %q, and %d volumes were deleted", one.Finalizers, more, driver.deleted)
		}
	}
}

// TestDeletedSetAndMarkedVolumes checks that a deleted set stays while one of its volumes has the finalizer of a slot:
// otherwise the manager could be taken away before it removes the finalizer.
func TestDeletedSetAndMarkedVolumes(t *testing.T) {
	for _, isRelabelled := range []bool{false, true} {
		served := func(set *v1alpha1.PersistentVolumeSet) { set.Status.Driver = "driver" }
		v := described(t, stored(), "x:bound:retain")[0]
		v.Finalizers = []string{v1alpha1.VolumeSlotFinalizer}
		if isRelabelled {
			v.Labels = nil
		}
		r, driver := bench(t, interceptor.Funcs{}, fast(), v, stored(leaving, served))
		if set := r.look(t); set.Name == "" {
			t.Errorf("relabelled: %t; the set goes before the finalizer", isRelabelled)
		}
		remove := removing(r, driver, time.Minute)
		if _, err := remove.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(v)}); err != nil {
			t.Fatal(err)
		}
		if set := r.look(t); set.Name != "" {
			t.Errorf("relabelled: %t; the set stays: %+v", isRelabelled, set.Status)
		}
	}
}

package binder

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	storage "k8s.io/component-helpers/storage/volume"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// world has an API with a class, a set of the class and other objects, and a binder.
type world struct {
	*testing.T
	api    client.WithWatch
	binder *reconciler
	writes int
	// before is called before each write of the binder, with its number.
	before func(write int)
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, storagev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	set := &v1alpha1.PersistentVolumeSet{ObjectMeta: metav1.ObjectMeta{Name: "set"}}
	set.Spec.Template.Spec.StorageClassName = "fast"
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}, Provisioner: "driver"}
	w := &world{T: t, before: func(int) {}}
	w.api = fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(objects, set, class)...).
		WithStatusSubresource(&pvc{}, &pv{}).
		WithIndex(&pv{}, byClaim, claimOf).WithIndex(&pv{}, ready, classOfReady).Build()
	own := interceptor.NewClient(w.api, interceptor.Funcs{
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			w.count()
			return c.Update(ctx, o, options...)
		},
		SubResourceUpdate: func(
			ctx context.Context, c client.Client, sub string, o client.Object, options ...client.SubResourceUpdateOption) error {
			w.count()
			return c.SubResource(sub).Update(ctx, o, options...)
		},
	})
	w.binder = newReconciler(w.api, own, Options{Driver: "driver", Log: slog.New(slog.DiscardHandler)})
	w.binder.events = events.NewFakeRecorder(100)
	var err error
	if w.binder.times, err = newTimes("driver", prometheus.NewRegistry()); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) count() {
	w.writes++
	w.before(w.writes)
}

// look reconciles a claim.
func (w *world) look(name string) error {
	_, err := w.binder.Reconcile(w.Context(),
		ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: name}})
	return err
}

// rest reconciles until the binder writes nothing.
func (w *world) rest(name string) {
	w.Helper()
	for range 10 {
		before := w.writes
		if err := w.look(name); err != nil {
			w.Logf("a look ends with %v", err)
		} else if w.writes == before {
			return
		}
	}
	w.Fatal("the binder does not come to rest")
}

func (w *world) claim(name string) *pvc {
	w.Helper()
	c := &pvc{}
	if err := w.api.Get(w.Context(), client.ObjectKey{Namespace: "ns", Name: name}, c); err != nil {
		w.Fatal(err)
	}
	return c
}

func (w *world) volume(name string) *pv {
	w.Helper()
	v := &pv{}
	if err := w.api.Get(w.Context(), client.ObjectKey{Name: name}, v); err != nil {
		w.Fatal(err)
	}
	return v
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// step makes one write of Kubernetes' own controller, in its order: claimRef, phase, claim, status. A refused write
// ends its attempt.
func (w *world) step(volume, claim string, number int) error {
	v, c := w.volume(volume), w.claim(claim)
	switch number {
	case 0:
		clone, _, err := storage.GetBindVolumeToClaim(v, c)
		w.must(err)
		return w.api.Update(w.Context(), clone)
	case 1:
		v.Status.Phase = corev1.VolumeBound
		return w.api.Status().Update(w.Context(), v)
	case 2:
		if c.Spec.VolumeName != "" {
			return fmt.Errorf("the claim is bound to %s", c.Spec.VolumeName)
		}
		boundTo(volume)(c)
		return w.api.Update(w.Context(), c)
	}
	c.Status.Phase, c.Status.AccessModes, c.Status.Capacity = corev1.ClaimBound, v.Spec.AccessModes, v.Spec.Capacity
	return w.api.Status().Update(w.Context(), c)
}

// isBound checks that a claim is bound to one volume as Kubernetes would have done it, and that no other volume names
// it.
func (w *world) isBound(claim string) {
	w.Helper()
	c := w.claim(claim)
	if c.Spec.VolumeName == "" || c.Status.Phase != corev1.ClaimBound {
		w.Fatalf("the claim is %s with %q", c.Status.Phase, c.Spec.VolumeName)
	}
	for _, key := range []string{storage.AnnBindCompleted, storage.AnnBoundByController} {
		if c.Annotations[key] != "yes" {
			w.Errorf("the claim has no %s", key)
		}
	}
	v := w.volume(c.Spec.VolumeName)
	if v.Spec.ClaimRef == nil || v.Spec.ClaimRef.UID != c.UID || v.Status.Phase != corev1.VolumeBound {
		w.Errorf("its volume is %s with %v", v.Status.Phase, v.Spec.ClaimRef)
	}
	if v.Annotations[storage.AnnBoundByController] != "yes" {
		w.Errorf("its volume has no %s", storage.AnnBoundByController)
	}
	if want := v.Spec.Capacity[corev1.ResourceStorage]; c.Status.Capacity.Storage().Cmp(want) != 0 ||
		len(c.Status.AccessModes) != 1 {
		w.Errorf("its status is %+v", c.Status)
	}
	var all corev1.PersistentVolumeList
	w.must(w.api.List(w.Context(), &all))
	for _, one := range all.Items {
		if one.Name != v.Name && one.Spec.ClaimRef != nil && one.Spec.ClaimRef.UID == c.UID {
			w.Errorf("%s names the claim too", one.Name)
		}
	}
}

// TestBinds checks that exactly four writes bind a claim.
func TestBinds(t *testing.T) {
	w := newWorld(t, newClaim(), newVolume("v"))
	w.rest("c")
	w.isBound("c")
	if w.writes != 4 {
		t.Errorf("%d writes were made, want 4", w.writes)
	}
}

// TestKubernetesBetween checks that the claim ends with one volume and the other is free, with any number of writes of
// Kubernetes' controller, to the same volume or another, before any write of the binder.
func TestKubernetesBetween(t *testing.T) {
	for _, volume := range []string{"v", "w"} {
		for at := range 5 {
			for steps := range 5 {
				t.Run(fmt.Sprintf("%s, %d writes before write %d", volume, steps, at), func(t *testing.T) {
					w := newWorld(t, newClaim(), newVolume("v"), newVolume("w", of("3Gi")))
					kubernetes := func() {
						for number := range steps {
							if w.step(volume, "c", number) != nil {
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
				})
			}
		}
	}
}

// TestTwoClaimsOneVolume checks that a volume that another claim got meanwhile stays with it, and that the claim gets
// the next one.
func TestTwoClaimsOneVolume(t *testing.T) {
	other := newClaim(func(c *pvc) { c.Name, c.UID = "d", "d-uid" })
	w := newWorld(t, newClaim(), other, newVolume("v"), newVolume("w", of("3Gi")))
	w.before = func(write int) {
		if write == 1 {
			for number := range 4 {
				w.must(w.step("v", "d", number))
			}
		}
	}
	w.rest("c")
	w.isBound("c")
	w.isBound("d")
	if w.claim("c").Spec.VolumeName != "w" {
		t.Errorf("the claim has %s", w.claim("c").Spec.VolumeName)
	}
}

// TestEventOfAFreedVolume checks that the API server accepts the event, whatever a person wrote into the claim.
func TestEventOfAFreedVolume(t *testing.T) {
	w := newWorld(t, newClaim(boundTo(strings.Repeat("v\x1b", 1000)), isBound), newVolume("w", named("c-uid")))
	told := events.NewFakeRecorder(10)
	w.binder.events = told
	w.rest("c")
	text := <-told.Events
	text, isFreed := strings.CutPrefix(text, "Normal BindingUndone ")
	if !isFreed || !strings.HasPrefix(text, `the claim ns/c was bound to v\x1bv`) || len(text) > 1024 {
		t.Errorf("the event has %d bytes: %.100q", len(text), text)
	}
}

// TestVolumeThatWasFreed checks that a freed volume is not bound until Kubernetes writes Available again: its
// controller marks a claim as lost if it last saw the volume with another claim.
func TestVolumeThatWasFreed(t *testing.T) {
	next := newClaim(func(c *pvc) { c.Name, c.UID = "d", "d-uid" })
	w := newWorld(t, newClaim(boundTo("v"), isBound), next, newVolume("v", named("c-uid"), phase(corev1.VolumeBound)),
		newVolume("w", named("c-uid")))
	var phases []corev1.PersistentVolumePhase
	w.before = func(int) { phases = append(phases, w.volume("w").Status.Phase) }
	w.rest("c")
	if v := w.volume("w"); v.Spec.ClaimRef != nil || v.Status.Phase != corev1.VolumePending ||
		v.Annotations[storage.AnnBoundByController] != "" {
		t.Errorf("the volume is %s with %v", v.Status.Phase, v.Spec.ClaimRef)
	}
	if len(phases) != 2 || phases[1] != corev1.VolumePending {
		t.Errorf("before the writes the phases were %v: Pending comes first", phases)
	}
	w.rest("d")
	if name := w.claim("d").Spec.VolumeName; name != "" {
		t.Errorf("the next claim has %s", name)
	}
	v := w.volume("w")
	v.Status.Phase = corev1.VolumeAvailable
	w.must(w.api.Status().Update(t.Context(), v))
	w.rest("d")
	w.isBound("d")
}

// TestGivenBackToItsSet checks that a freed volume returns to its set, which otherwise could never delete it.
func TestGivenBackToItsSet(t *testing.T) {
	const provisioners = "external-provisioner.volume.kubernetes.io/finalizer"
	handedOver := func(v *pv) {
		v.Annotations[v1alpha1.VolumeSetAnnotation] = "set-uid"
		v.Finalizers = []string{"kubernetes.io/pv-protection", provisioners}
		v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
	}
	mine := newVolume("w", named("c-uid"), phase(corev1.VolumeBound), handedOver)
	w := newWorld(t, newClaim(boundTo("v"), func(c *pvc) { c.Status.Phase = corev1.ClaimBound }),
		newVolume("v", named("c-uid"), phase(corev1.VolumeBound)), mine)
	w.rest("c")
	var freed pv
	w.must(w.api.Get(w.Context(), types.NamespacedName{Name: "w"}, &freed))
	want := []string{"kubernetes.io/pv-protection", v1alpha1.VolumeSetFinalizer}
	if freed.Spec.ClaimRef != nil || !slices.Equal(freed.Finalizers, want) {
		t.Errorf("the volume names %v and has the finalizers %q, want none and %q", freed.Spec.ClaimRef, freed.Finalizers,
			want)
	}
}

// TestReleasedMeanwhile checks that a volume is left alone if Kubernetes wrote its release right before it would be
// freed.
func TestReleasedMeanwhile(t *testing.T) {
	for at := range 2 {
		w := newWorld(t, newClaim(boundTo("v"), isBound), newVolume("v", named("c-uid"), phase(corev1.VolumeBound)),
			newVolume("w", named("c-uid")))
		w.before = func(write int) {
			if write == at+1 {
				v := w.volume("w")
				v.Status.Phase = corev1.VolumeReleased
				w.must(w.api.Status().Update(t.Context(), v))
			}
		}
		w.rest("c")
		if v := w.volume("w"); v.Spec.ClaimRef == nil || v.Status.Phase != corev1.VolumeReleased {
			t.Errorf("before write %d: the volume is %s with %v", at+1, v.Status.Phase, v.Spec.ClaimRef)
		}
	}
}

// TestClaimGoes checks that a claim that is deleted during its binding leaves its volume to Kubernetes, which cannot
// know that it was never used.
func TestClaimGoes(t *testing.T) {
	w := newWorld(t, newClaim(), newVolume("v"))
	w.before = func(write int) {
		if write == 3 {
			w.must(w.api.Delete(t.Context(), w.claim("c")))
		}
	}
	w.rest("c")
	if v := w.volume("v"); v.Spec.ClaimRef == nil || v.Status.Phase != corev1.VolumeBound {
		t.Errorf("the volume is %s with %v", v.Status.Phase, v.Spec.ClaimRef)
	}
	if len(w.binder.begun) > 0 {
		t.Errorf("the claim is remembered: %v", w.binder.begun)
	}
}

// TestOldCache checks that a binder whose cache shows none of its own writes takes neither a second volume for the
// claim nor the volume for a second claim.
func TestOldCache(t *testing.T) {
	w := newWorld(t, newClaim(), newClaim(func(c *pvc) { c.Name, c.UID = "d", "d-uid" }), newVolume("v"),
		newVolume("w", of("3Gi")))
	old := newWorld(t, w.claim("c"), w.claim("d"), w.volume("v"), w.volume("w"))
	w.binder.cache = old.api
	for _, one := range []string{"v", "w"} { // Both worlds count resource versions the same way.
		if a, b := old.volume(one).ResourceVersion, w.volume(one).ResourceVersion; a != b {
			t.Fatalf("%s has the versions %s and %s", one, a, b)
		}
	}
	w.must(w.look("c"))
	w.must(w.look("c"))
	if w.writes > 5 {
		t.Errorf("%d writes were made", w.writes)
	}
	w.isBound("c")
	w.must(w.look("d"))
	w.isBound("d")
}

// TestOldCacheAfterAConflict checks that a binder continues a binding that its cache does not show.
func TestOldCacheAfterAConflict(t *testing.T) {
	w := newWorld(t, newClaim(), newVolume("v"), newVolume("w", of("3Gi")))
	w.binder.cache = newWorld(t, w.claim("c"), w.volume("v"), w.volume("w")).api
	w.before = func(write int) {
		if write == 2 {
			v := w.volume("v")
			v.Labels = map[string]string{"touched": "yes"}
			w.must(w.api.Update(t.Context(), v))
		}
	}
	w.must(w.look("c"))
	w.must(w.look("c"))
	w.isBound("c")
}

// TestCacheBehindTheEnd checks that a binder does not repeat writes if its cache shows all of its writes but the last.
func TestCacheBehindTheEnd(t *testing.T) {
	w := newWorld(t, newClaim(), newVolume("v"))
	var volume *pv
	var claim *pvc
	w.before = func(write int) {
		if write == 4 {
			volume, claim = w.volume("v"), w.claim("c")
		}
	}
	w.must(w.look("c"))
	now := w.binder.cache
	w.binder.cache = newWorld(t, claim, volume).api
	w.must(w.look("c"))
	if w.writes != 4 {
		t.Errorf("%d writes were made, want 4", w.writes)
	}
	w.binder.cache = now
	w.rest("c")
	w.isBound("c")
	if len(w.binder.begun) > 0 {
		t.Errorf("the claim is remembered: %v", w.binder.begun)
	}
}

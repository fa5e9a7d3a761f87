package volumeset

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// happen lets Kubernetes and people act.
func (w *world) happen() {
	if all := w.api.volumes(); len(all) > 0 {
		v := all[w.IntN(len(all))].DeepCopy()
		if w.kubernetes(v) {
			return
		}
		w.people(v)
	}
	set := w.api.set()
	if set == nil {
		return
	}
	set = set.DeepCopy()
	switch w.IntN(60) {
	case 0:
		set.Spec.MaximumReplicas = set.Spec.MinimumReplicas + w.Int32N(5)
	case 1:
		set.Spec.MinimumReplicas = min(set.Spec.MaximumReplicas, w.Int32N(5))
	case 2:
		set.Spec.Template.Metadata.Annotations = map[string]string{"at": fmt.Sprint(w.steps), "text": w.text}
		set.Spec.Template.Spec.Capacity = resource.MustParse([]string{"1Gi", "2Gi"}[w.IntN(2)])
		if w.IntN(3) == 0 {
			set.Spec.Template.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
		}
		if w.IntN(3) == 0 {
			set.Spec.Template.Spec.StorageClassName = []string{"fast", "slow"}[w.IntN(2)]
		}
	case 3:
		w.foreign()
		return
	case 4:
		if w.IntN(w.patience(set)) == 0 && set.DeletionTimestamp == nil {
			w.note("the set is deleted")
			_ = w.api.delete(sets, set.Name, nil)
		}
		return
	case 5, 6:
		if w.IntN(w.patience(set)) > 0 {
			return
		}
		set.Spec.MinimumReplicas, set.Spec.MaximumReplicas = 0, 0
	default:
		return
	}
	set.Generation++
	w.note("the set is %d to %d", set.Spec.MinimumReplicas, set.Spec.MaximumReplicas)
	w.api.put(set)
}

// patience returns the odds against stopping a set. They are shorter while some slots were not requested yet, so that
// these are withdrawn.
func (w *world) patience(set *v1alpha1.PersistentVolumeSet) int {
	isWaiting := func(slot v1alpha1.VolumeSlot) bool { return !w.driver.asked[slot.Name] }
	if slices.ContainsFunc(set.Status.Slots, isWaiting) {
		return 1
	}
	return 8
}

// foreign creates a volume with the set's labels by hand.
func (w *world) foreign() {
	v := &corev1.PersistentVolume{}
	v.Name, v.Labels = fmt.Sprint("foreign-", w.steps), map[string]string{"pool": "a"}
	v.Spec.StorageClassName = []string{"fast", "slow"}[w.IntN(2)]
	v.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")}
	v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	w.note("somebody makes %s", v.Name)
	w.api.put(v)
}

// kubernetes takes the next step of Kubernetes or csi-provisioner with a volume, and reports whether there was any.
func (w *world) kubernetes(v *corev1.PersistentVolume) bool {
	switch {
	case v.Status.Phase == "" && v.DeletionTimestamp == nil:
		v.Status.Phase = corev1.VolumeAvailable
	case v.Spec.ClaimRef != nil && v.Status.Phase == corev1.VolumeAvailable:
		v.Status.Phase = corev1.VolumeBound
		w.used[v.Name] = true
		if !isRetained(v) {
			w.bound = append(w.bound, v.Name)
		}
	case w.recycles && isRetained(v) && v.DeletionTimestamp == nil && v.Spec.CSI != nil && w.recycle(v):
	case v.Status.Phase == corev1.VolumeReleased && !isRetained(v) && (v.DeletionTimestamp == nil || isHandedOver(v)):
		w.provisionerDeletes(v)
		return true
	default:
		return false
	}
	w.note("%s is %s", v.Name, v.Status.Phase)
	w.api.put(v)
	return true
}

// provisionerDeletes deletes a released volume as csi-provisioner does: the volume, its object, and its own finalizer.
func (w *world) provisionerDeletes(v *corev1.PersistentVolume) {
	if v.Spec.CSI != nil {
		w.driver.delete(v.Spec.CSI.VolumeHandle)
	}
	w.note("csi-provisioner deletes %s", v.Name)
	_ = w.api.delete(volumes, v.Name, nil)
	if now, ok := w.api.live[volumes][v.Name].(*corev1.PersistentVolume); ok {
		now = now.DeepCopy()
		controllerutil.RemoveFinalizer(now, provisionerFinalizer)
		w.api.put(now)
	}
}

// handOver lets csi-provisioner put its finalizer on a volume that it saw bound, late and whatever its state is now.
// The API server accepts no new finalizer on an object that is being deleted.
func (w *world) handOver() {
	if len(w.bound) == 0 {
		return
	}
	name := w.bound[0]
	w.bound = w.bound[1:]
	v, ok := w.api.live[volumes][name].(*corev1.PersistentVolume)
	if !ok || v.DeletionTimestamp != nil || controllerutil.ContainsFinalizer(v, provisionerFinalizer) {
		return
	}
	v = v.DeepCopy()
	controllerutil.AddFinalizer(v, provisionerFinalizer)
	w.note("csi-provisioner puts its finalizer on %s", name)
	w.api.put(v)
	if v.Spec.ClaimRef == nil && w.IntN(3) == 0 {
		w.note("somebody deletes %s", name)
		_ = w.api.delete(volumes, name, nil)
	}
}

// free removes the claim from a volume that has just been bound, as the binder does if Kubernetes has bound the claim
// elsewhere. The volume returns to the set.
func (w *world) free() {
	if set := w.api.set(); len(w.bound) == 0 || set == nil || set.DeletionTimestamp != nil {
		return
	}
	v, ok := w.api.live[volumes][w.bound[len(w.bound)-1]].(*corev1.PersistentVolume)
	if !ok || v.Status.Phase != corev1.VolumeBound || v.DeletionTimestamp != nil {
		return
	}
	v = v.DeepCopy()
	v.Spec.ClaimRef, v.Status.Phase = nil, ""
	Regain(v)
	w.note("%s is given back", v.Name)
	w.api.put(v)
}

// recycle takes the next step of the recycler, or of Kubernetes for it, with a volume: a released volume is bound to
// the scrub claim, then released again, and then unbound.
func (w *world) recycle(v *corev1.PersistentVolume) bool {
	const scrub = "scrub"
	ref := v.Spec.ClaimRef
	switch isScrubs := ref != nil && ref.Name == scrub; {
	case v.Status.Phase == corev1.VolumeReleased && isScrubs:
		v.Spec.ClaimRef, v.Status.Phase = nil, corev1.VolumeAvailable
	case v.Status.Phase == corev1.VolumeReleased:
		v.Spec.ClaimRef, v.Status.Phase = &corev1.ObjectReference{Name: scrub, UID: types.UID("scrub of " + v.Name)},
			corev1.VolumeBound
	case v.Status.Phase == corev1.VolumeBound && isScrubs:
		v.Status.Phase = corev1.VolumeReleased
	default:
		return false
	}
	return true
}

func isRetained(v *corev1.PersistentVolume) bool {
	return v.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain
}

func (w *world) people(v *corev1.PersistentVolume) {
	number := w.IntN(20)
	switch {
	case number < 8 && v.Status.Phase == corev1.VolumeAvailable && v.Spec.ClaimRef == nil && v.DeletionTimestamp == nil:
		v.Spec.ClaimRef = &corev1.ObjectReference{Name: "claim", UID: types.UID(v.Name)}
		w.note("a claim takes %s", v.Name)
	case number < 16 && v.Status.Phase == corev1.VolumeBound:
		v.Status.Phase = corev1.VolumeReleased
		w.note("%s is released", v.Name)
	case number == 16:
		w.note("somebody deletes %s", v.Name)
		_ = w.api.delete(volumes, v.Name, nil)
		if isRetained(v) && v.Spec.CSI != nil {
			w.driver.keep(v.Spec.CSI.VolumeHandle)
		}
		return
	case number == 18 && v.DeletionTimestamp != nil && v.Spec.CSI != nil: // As if the manager were gone.
		v.Finalizers = nil
		w.driver.delete(v.Spec.CSI.VolumeHandle)
		w.note("somebody takes the finalizers of %s away, and deletes its volume", v.Name)
	case number == 17:
		v.Labels = map[string]string{"pool": "b"}
		w.note("somebody relabels %s", v.Name)
	default:
		return
	}
	w.api.put(v)
}

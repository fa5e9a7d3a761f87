package volumeset

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	storage "k8s.io/component-helpers/storage/volume"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/printable"
)

// isUnbound reports whether a volume has no claim, or names one that it is not bound to yet. It may lose that claim
// again.
func isUnbound(v *corev1.PersistentVolume) bool {
	return v.Spec.ClaimRef == nil || isInUse(v) && v.Status.Phase != corev1.VolumeBound
}

// find records the classes of the unbound volumes.
func (o *round) find(volumes []*corev1.PersistentVolume) {
	for _, v := range volumes {
		if isUnbound(v) && v.DeletionTimestamp == nil {
			o.found[storage.GetPersistentVolumeClass(v)] = true
		}
	}
}

// classes returns the classes that may have unbound volumes of the set: those that were found, those of its slots, and
// the template's. If the order of a slot is missing, all classes in the status are included.
func (o *round) classes() map[string]bool {
	all, s := maps.Clone(o.found), &o.set.Status
	all[o.set.Spec.Template.Spec.StorageClassName] = true
	for _, slot := range s.Slots {
		if o.ended[slot.Name] {
			continue
		}
		class, isKnown := classOf(o.set, slot)
		if isKnown {
			all[class] = true
			continue
		}
		for _, written := range s.Classes {
			all[written] = true
		}
	}
	return all
}

// classOf returns the class of a slot's volume, if the status has it.
func classOf(set *v1alpha1.PersistentVolumeSet, slot v1alpha1.VolumeSlot) (class string, isKnown bool) {
	if slot.Template != nil {
		return classIn(*slot.Template), true
	}
	for i := range set.Status.Orders {
		if order := &set.Status.Orders[i]; order.Name == slot.Order {
			return classIn(order.Template), true
		}
	}
	return "", false
}

// reviewClasses reads all volumes past the cache if the status has a class in which nothing was found, or has lost its
// classes. This happens once for each class that is dropped. The list includes all volumes that the set created,
// relabelled or not, because a volume has a slot until it has a PersistentVolume.
func (r *reconciler) reviewClasses(ctx context.Context, o *round) error {
	found := o.classes()
	isLeft := func(class string) bool { return !found[class] }
	isLost := o.set.Status.Driver != "" && len(o.set.Status.Classes) == 0
	if !isLost && !slices.ContainsFunc(o.set.Status.Classes, isLeft) {
		return nil
	}
	var all corev1.PersistentVolumeList
	if err := r.live.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	for i := range all.Items {
		v := &all.Items[i]
		isMade := v.Annotations[v1alpha1.VolumeSetAnnotation] == string(o.set.UID)
		if isMade || selector(o.set).Matches(labels.Set(v.Labels)) {
			o.find([]*corev1.PersistentVolume{v})
		}
	}
	o.isSure = true
	return nil
}

// noteClasses puts the classes into the status, together with the slots, before a volume exists in a class.
func (o *round) noteClasses() {
	all, s := o.classes(), &o.set.Status
	if !o.isSure {
		for _, class := range s.Classes {
			all[class] = true
		}
	}
	s.Classes = slices.Sorted(maps.Keys(all))
}

// leave records an event with the classes in which a deleted set leaves unbound volumes. Only the set kept claims with
// a data source from binding to them.
func (r *reconciler) leave(o *round) {
	if len(o.found) > 0 {
		text := fmt.Sprintf("unbound volumes are left, and a claim that is to be a clone or restored from a snapshot would "+
			"be bound to one, empty: delete their PersistentVolumes before you make such a claim in one of their classes: %q",
			slices.Sorted(maps.Keys(o.found))) // The classes come last: an event may be too short for all.
		r.events.Eventf(o.set, nil, corev1.EventTypeWarning, "VolumesLeft", "Delete", "%s", printable.Event(text))
	}
}

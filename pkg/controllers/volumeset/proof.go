package volumeset

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-csi/stowage/pkg/controllers/csiclient"
)

// relabelled finds the slots whose PersistentVolumes exist and no longer bear the set's labels: they are nothing to wait for. One that
// bears them came after the list, and counts.
func (r *reconciler) relabelled(ctx context.Context, o *round) error {
	for _, slot := range o.set.Status.Slots {
		if o.census.fulfilled[slot.Name] {
			continue
		}
		v := &corev1.PersistentVolume{}
		err := r.client.Get(ctx, client.ObjectKey{Name: slot.Name}, v)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if err == nil && !selector(o.set).Matches(labels.Set(v.Labels)) {
			o.census.fulfilled[slot.Name] = true
			o.census.slots, o.census.total = o.census.slots-1, o.census.total-1
		}
	}
	return nil
}

// prove asks the API server whether it would take the PersistentVolumes of new slots, before there is a slot: a volume whose
// object is refused for ever could neither be given to claims nor be let go of.
func (r *reconciler) prove(ctx context.Context, o *round) error {
	if o.actions.create == 0 {
		return nil
	}
	slot := newSlots(o.set, o.settings, 1, nil, nil)[len(o.set.Status.Slots)]
	asked := csiclient.Volume{Handle: slot.Name, SizeBytes: slot.Template.Spec.Capacity.Value()}
	err := r.client.Create(ctx, persistentVolume(r.driver.Driver(), o.set, slot, asked), client.DryRunAll)
	if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) {
		o.problem = verdict{reasonTemplate, "the API server refuses a PersistentVolume of this template: " + err.Error()}
		o.actions.create, o.wait = 0, lastPause
		return nil
	}
	return err
}

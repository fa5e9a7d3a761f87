package volumeset

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// yield keeps a set from creating volumes if an older set exists and each of the two counts the volumes of the other.
// Otherwise both would see too few and create, then both would see too many and delete, endlessly.
func (r *reconciler) yield(ctx context.Context, o *round) error {
	if o.actions.create == 0 {
		return nil
	}
	var all v1alpha1.PersistentVolumeSetList
	if err := r.client.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	for i := range all.Items {
		if other := &all.Items[i]; isElder(other, o.set) && selects(other, o.set) && selects(o.set, other) {
			o.problem = verdict{reasonTwin,
				fmt.Sprintf("the PersistentVolumeSet %s, which is older, has volumes with the labels that this"+
					" one selects, and selects those of this one: give each a label of its own. This one creates none meanwhile",
					other.Name)}
			o.actions.create, o.wait = 0, lastPause
			return nil
		}
	}
	return nil
}

// selects reports whether the selector of a set matches the volumes that another set creates.
func selects(set, other *v1alpha1.PersistentVolumeSet) bool {
	made := labels.Set{}
	for key, value := range other.Spec.Template.Metadata.Labels {
		made[key] = string(value)
	}
	return selector(set).Matches(made)
}

// isElder reports whether a set is older than another and is not being deleted.
func isElder(set, other *v1alpha1.PersistentVolumeSet) bool {
	if set.UID == other.UID || set.DeletionTimestamp != nil {
		return false
	}
	if set.CreationTimestamp.Equal(&other.CreationTimestamp) {
		return set.Name < other.Name
	}
	return set.CreationTimestamp.Before(&other.CreationTimestamp)
}

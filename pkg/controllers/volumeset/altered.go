package volumeset

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// errAltered reports that the PersistentVolumes of a set would not be those that it asks for.
var errAltered = errors.New("an admission webhook or policy would alter a PersistentVolume of this template")

// unaltered checks the API server's answer to a dry run: the set must count a volume like this, know it as its own, and
// find it fit for claims of the template. Otherwise it would create volumes without end, or up to its maximum.
func unaltered(set *v1alpha1.PersistentVolumeSet, v *corev1.PersistentVolume) error {
	maker := v.Annotations[v1alpha1.VolumeSetAnnotation]
	switch {
	case !selector(set).Matches(labels.Set(v.Labels)):
		return fmt.Errorf("%w: it would have the labels %q, and the set counts volumes with %s; have it leave the labels",
			errAltered, v.Labels, selector(set))
	case maker != string(set.UID):
		return fmt.Errorf("%w: its annotation %s would be %q, and the set knows its volumes by %q; have it leave the"+
			" annotation", errAltered, v1alpha1.VolumeSetAnnotation, maker, set.UID)
	case !fits(set.Spec.Template.Spec, v):
		return fmt.Errorf("%w: claims of the template could not use it; have it leave the class, size and modes", errAltered)
	}
	return nil
}

// heedStrays bounds the volumes that a set creates by its unbound volumes without its labels. The set does not count
// them, so that it would have no maximum if something removed the labels of each volume.
func (o *round) heedStrays() {
	if o.actions.create == 0 {
		return
	}
	lost, one := 0, ""
	for _, v := range o.strays {
		if v.Spec.ClaimRef == nil && v.DeletionTimestamp == nil {
			if lost++; one == "" || v.Name < one {
				one = v.Name
			}
		}
	}
	if room := int(o.set.Spec.MaximumReplicas) - lost; room > 0 {
		o.actions.create = min(o.actions.create, room)
		return
	}
	o.problem = verdict{reasonRelabelled,
		fmt.Sprintf("%d unbound volumes that the set created, such as %s, have lost its labels (%s): as many as its maximum,"+
			" so that no others are created. Find out what removes the labels. Then put them back, delete these"+
			" PersistentVolumes, or raise maximumReplicas", lost, one, selector(o.set))}
	o.actions.create = 0
}

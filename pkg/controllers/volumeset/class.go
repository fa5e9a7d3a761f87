package volumeset

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// readClass reads the StorageClass of a set and checks whether it can be used.
func (r *reconciler) readClass(ctx context.Context, o *round) error {
	name := o.set.Spec.Template.Spec.StorageClassName
	o.class = &storagev1.StorageClass{}
	err := r.client.Get(ctx, client.ObjectKey{Name: name}, o.class)
	if apierrors.IsNotFound(err) {
		o.unusable = verdict{reasonClassNotFound,
			fmt.Sprintf("the StorageClass %q of the template does not exist: create it, or name another", name)}
		return nil
	}
	if err != nil {
		return err
	}
	if driver := o.set.Status.Driver; driver != "" && o.class.Provisioner != driver {
		o.unusable = verdict{reasonClassUnusable,
			fmt.Sprintf("the StorageClass %q is of the provisioner %s, and the set is served by %s: create another set",
				name, o.class.Provisioner, driver)}
		return nil
	}
	settings, unusable := slotClass(o.class)
	if unusable != nil {
		o.unusable = verdict{reasonClassUnusable, unusable.Error()}
	}
	o.settings = settings
	if noted := classIn(o.set.Spec.Template); noted != name {
		o.unusable = verdict{reasonTemplate,
			fmt.Sprintf("the template has the storageClassName %q, and its annotation %s names %q, which Kubernetes prefers: no"+
				" claim of the first class would get a volume; remove the annotation", name, corev1.BetaStorageClassAnnotation,
				noted)}
	}
	return nil
}

// classIn returns the class of the volumes of a template. Like Kubernetes, it prefers the old annotation.
func classIn(template v1alpha1.PersistentVolumeTemplate) string {
	if class, found := template.Metadata.Annotations[corev1.BetaStorageClassAnnotation]; found {
		return class
	}
	return template.Spec.StorageClassName
}

// serves reports whether this manager's driver creates the volumes of the set.
func (r *reconciler) serves(o *round) bool {
	if o.set.Status.Driver != "" {
		return o.set.Status.Driver == r.driver.Driver()
	}
	return o.class.Provisioner == r.driver.Driver()
}

// orphaned writes into the status of a set that its class is missing. The managers of all drivers write the same text,
// because none serves the set yet.
func (r *reconciler) orphaned(ctx context.Context, o *round) error {
	before := o.set.Status.DeepCopy()
	write(o.set, census{}, o.unusable)
	if equality.Semantic.DeepEqual(before, &o.set.Status) {
		return nil
	}
	err := r.client.Status().Update(ctx, o.set)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil // An event follows if the set still exists.
	}
	if err == nil {
		r.announce(o.set, before.Conditions)
	}
	return err
}

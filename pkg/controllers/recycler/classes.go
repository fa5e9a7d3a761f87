package recycler

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	storage "k8s.io/component-helpers/storage/volume"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// classKey returns the key under which the class of a volume is noted.
func classKey(v *corev1.PersistentVolume) string {
	return cmp.Or(storage.GetPersistentVolumeClass(v), v1alpha1.NoClass)
}

// classes reads the ConfigMap of the classes with recycled volumes, or returns nil if it does not exist.
func (r *reconciler) classes(ctx context.Context) (*corev1.ConfigMap, error) {
	return find(ctx, r.live, r.Namespace, v1alpha1.RecycledClasses, &corev1.ConfigMap{})
}

// isNoted reports whether the class of a volume is noted. If the list cannot be read it returns false, and the step
// that writes it fails and reports the error.
func (r *reconciler) isNoted(ctx context.Context, v *corev1.PersistentVolume) bool {
	list, err := r.classes(ctx)
	if err != nil || list == nil {
		return false
	}
	_, noted := list.Data[classKey(v)]
	return noted
}

// noteClass notes that the class of a volume may have recycled volumes, before claims can bind to the volume. Only a
// person removes a class again.
func (r *reconciler) noteClass(ctx context.Context, v *corev1.PersistentVolume) error {
	list, err := r.classes(ctx)
	if err != nil {
		return err
	}
	key := classKey(v)
	if list == nil {
		meta := metav1.ObjectMeta{Namespace: r.Namespace, Name: v1alpha1.RecycledClasses}
		return r.write.Create(ctx, &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{key: ""}})
	}
	if list.Data == nil {
		list.Data = map[string]string{}
	}
	list.Data[key] = ""
	return r.write.Update(ctx, list)
}

// notNoted explains the failure to note the class of a volume.
func (r *reconciler) notNoted(v *corev1.PersistentVolume, cause error) string {
	return fmt.Sprintf("the class %q of the volume could not be written into the ConfigMap %s/%s, by which claims with a "+
		"data source are kept from recycled volumes: %s", storage.GetPersistentVolumeClass(v), r.Namespace,
		v1alpha1.RecycledClasses, cause)
}

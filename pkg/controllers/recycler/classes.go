package recycler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	storage "k8s.io/component-helpers/storage/volume"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// classKey returns the name under which the class of a volume is noted.
func classKey(v *corev1.PersistentVolume) string {
	return cmp.Or(storage.GetPersistentVolumeClass(v), v1alpha1.NoClass)
}

// classes reads the ServiceAccount with the classes with recycled volumes, or returns nil if it does not exist.
func (r *reconciler) classes(ctx context.Context) (*corev1.ServiceAccount, error) {
	return find(ctx, r.live, r.Namespace, v1alpha1.RecycledClasses, &corev1.ServiceAccount{})
}

// listedClasses returns the classes in the list.
func listedClasses(list *corev1.ServiceAccount) []string {
	text := list.Annotations[v1alpha1.RecycledClassesAnnotation]
	return slices.DeleteFunc(strings.Split(text, ","), func(class string) bool { return class == "" })
}

// isNoted reports whether the class of a volume is noted. If the list cannot be read it returns false, and the step
// that writes it fails and reports the error.
func (r *reconciler) isNoted(ctx context.Context, v *corev1.PersistentVolume) bool {
	list, err := r.classes(ctx)
	return err == nil && list != nil && slices.Contains(listedClasses(list), classKey(v))
}

// errComma is the error for a class that the list cannot have. Only the annotation can name it: the API server checks
// the field.
var errComma = errors.New("no StorageClass has a name with a comma: remove the annotation " +
	corev1.BetaStorageClassAnnotation + " from the PersistentVolume, or write the name of its class there")

// noteClass notes that the class of a volume may have recycled volumes, before claims can bind to the volume. Only a
// person removes a class again.
func (r *reconciler) noteClass(ctx context.Context, v *corev1.PersistentVolume) error {
	if strings.Contains(classKey(v), ",") {
		return errComma
	}
	list, err := r.classes(ctx)
	if err != nil {
		return err
	}
	if list == nil {
		list = &corev1.ServiceAccount{AutomountServiceAccountToken: new(bool)} // No pod of this account gets a token.
		list.Namespace, list.Name = r.Namespace, v1alpha1.RecycledClasses
	}
	classes := append(listedClasses(list), classKey(v))
	metav1.SetMetaDataAnnotation(&list.ObjectMeta, v1alpha1.RecycledClassesAnnotation, strings.Join(classes, ","))
	if list.ResourceVersion == "" {
		return r.write.Create(ctx, list)
	}
	return r.write.Update(ctx, list)
}

// notNoted explains the failure to note the class of a volume.
func (r *reconciler) notNoted(v *corev1.PersistentVolume, cause error) string {
	return fmt.Sprintf("the class %q of the volume could not be written into the annotation %s of the ServiceAccount "+
		"%s/%s, by which claims with a data source are kept from recycled volumes: %s", storage.GetPersistentVolumeClass(v),
		v1alpha1.RecycledClassesAnnotation, r.Namespace, v1alpha1.RecycledClasses, cause)
}

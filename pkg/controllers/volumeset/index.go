package volumeset

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// Indexes of the PersistentVolumes in the cache. With them, reconciling a set does not read all PersistentVolumes of a
// cluster.
const (
	labelIndex = "stowage.dev/label" // by each label, as key=value
	makerIndex = "stowage.dev/maker" // by the UID of the set that created it

	handleIndex = "stowage.dev/handle" // by volume handle, as driver^handle
)

// indexes returns the indexer functions by index name.
func indexes() map[string]client.IndexerFunc {
	return map[string]client.IndexerFunc{
		labelIndex: func(object client.Object) (all []string) {
			for key, value := range object.GetLabels() {
				all = append(all, key+"="+value)
			}
			return all
		},
		makerIndex: func(object client.Object) []string {
			if maker := object.GetAnnotations()[v1alpha1.VolumeSetAnnotation]; maker != "" {
				return []string{maker}
			}
			return nil
		},
		handleIndex: func(object client.Object) []string {
			if v, ok := object.(*corev1.PersistentVolume); ok && v.Spec.CSI != nil {
				return []string{v.Spec.CSI.Driver + "^" + v.Spec.CSI.VolumeHandle}
			}
			return nil
		},
	}
}

// cached returns the volumes of a set from the cache.
func (r *reconciler) cached(ctx context.Context,
	set *v1alpha1.PersistentVolumeSet) ([]*corev1.PersistentVolume, error) {
	key := slices.Min(slices.Collect(maps.Keys(set.Spec.Selector))) // The selector has at least one label.
	return volumesOf(ctx, r.client, set, client.MatchingFields{labelIndex: key + "=" + string(set.Spec.Selector[key])})
}

// strays returns the volumes that the set created and that its selector no longer matches. They no longer count in the
// set, but they exist. They belong to the cache and must not be changed.
func (r *reconciler) strays(ctx context.Context,
	set *v1alpha1.PersistentVolumeSet) (all []*corev1.PersistentVolume, err error) {
	var made corev1.PersistentVolumeList
	err = r.client.List(ctx, &made, client.MatchingFields{makerIndex: string(set.UID)}, client.UnsafeDisableDeepCopy)
	for i := range made.Items {
		if v := &made.Items[i]; !selector(set).Matches(labels.Set(v.Labels)) {
			all = append(all, v)
		}
	}
	return all, err
}

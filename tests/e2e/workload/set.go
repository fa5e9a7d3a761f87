package workload

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// Sets is the kind PersistentVolumeSet.
func Sets() Kind {
	return Kind{Name: "PersistentVolumeSet", Resource: group("stowage.dev", "v1alpha1", "persistentvolumesets"),
		Global: true}
}

// setLabel is on the volumes of a test's sets, with the set's name.
const setLabel = "stowage-e2e-set"

// Set describes a set of volumes of 16Mi with the policy Delete. The functions change its defaults.
func (s *Space) Set(name, class string, minimum, maximum int32,
	changes ...func(*v1alpha1.PersistentVolumeSet)) *v1alpha1.PersistentVolumeSet {
	name = s.Namespace + "-" + name
	labels := map[string]v1alpha1.LabelValue{setLabel: v1alpha1.LabelValue(name)}
	set := &v1alpha1.PersistentVolumeSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: Sets().Name},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{label: "true"}},
		Spec: v1alpha1.PersistentVolumeSetSpec{
			MinimumReplicas: minimum, MaximumReplicas: maximum, Selector: labels,
			Template: v1alpha1.PersistentVolumeTemplate{
				Metadata: v1alpha1.TemplateMetadata{Labels: labels},
				Spec: v1alpha1.PersistentVolumeTemplateSpec{
					StorageClassName: class, Capacity: resource.MustParse("16Mi"),
					PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
				},
			},
		},
	}
	for _, change := range changes {
		change(set)
	}
	return set
}

// TryMakeSet creates a set, and returns the API server's refusal. The set is deleted when the test ends, unless the
// test has deleted it.
func (s *Space) TryMakeSet(set *v1alpha1.PersistentVolumeSet) error {
	s.T.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(set)
	s.Must(err)
	unstructured.RemoveNestedField(content, "status")
	_, err = s.objects(Sets(), "").Create(s.Context(), &unstructured.Unstructured{Object: content}, metav1.CreateOptions{})
	if err == nil {
		s.T.Cleanup(func() { s.removeSet(set.Name) })
	}
	return err
}

// MakeSet creates a set, and returns its name.
func (s *Space) MakeSet(set *v1alpha1.PersistentVolumeSet) string {
	s.T.Helper()
	s.Must(s.TryMakeSet(set))
	return set.Name
}

// ChangeSet applies a JSON merge patch to a set.
func (s *Space) ChangeSet(name, patch string) {
	s.T.Helper()
	s.change(Sets(), name, patch)
}

// DeleteSet deletes a set and waits until it is gone.
func (s *Space) DeleteSet(name string) {
	s.T.Helper()
	s.Must(s.objects(Sets(), "").Delete(s.Context(), name, metav1.DeleteOptions{}))
	s.UntilGone(Sets(), name)
}

// SetIs waits until a set's condition Ready has the reason, and its numbers of unbound and bound volumes are as given.
func (s *Space) SetIs(name, reason string, unbound, bound int32) *v1alpha1.PersistentVolumeSet {
	s.T.Helper()
	return Until(s, Sets(), name, "is "+reason, func(set *v1alpha1.PersistentVolumeSet) bool {
		ready := len(set.Status.Conditions) == 1 && set.Status.Conditions[0].Reason == reason
		seen := set.Status.ObservedGeneration == set.Generation
		return ready && seen && set.Status.UnboundReplicas == unbound && set.Status.BoundReplicas == bound
	})
}

// SetVolumes returns the PersistentVolumes of a set by name.
func (s *Space) SetVolumes(name string) map[string]corev1.PersistentVolume {
	s.T.Helper()
	list, err := s.Client.CoreV1().PersistentVolumes().List(s.Context(),
		metav1.ListOptions{LabelSelector: setLabel + "=" + name})
	s.Must(err)
	volumes := map[string]corev1.PersistentVolume{}
	for _, volume := range list.Items {
		volumes[volume.Name] = volume
	}
	return volumes
}

// WatchSet calls seen with the number of a set's PersistentVolumes after each change, until the context ends.
func (s *Space) WatchSet(ctx context.Context, name string, seen func(total int)) {
	there := map[string]bool{}
	never := func() bool { return false }
	_ = s.await(ctx, Volumes(), "", fields.Everything(), never,
		func(object *unstructured.Unstructured, gone bool) (bool, error) {
			if object.GetLabels()[setLabel] == name {
				there[object.GetName()] = true
			}
			if gone {
				delete(there, object.GetName())
			}
			seen(len(there))
			return false, nil
		})
}

// removeSet deletes a set if it still exists, and waits until its unbound volumes are gone.
func (s *Space) removeSet(name string) {
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	if s.T.Failed() {
		s.T.Logf("%s", s.explain(Sets(), name))
	}
	_ = s.objects(Sets(), "").Delete(ctx, name, metav1.DeleteOptions{}) // The test may have deleted it.
	if err := s.AwaitGone(ctx, Sets(), "", name); err != nil {
		s.T.Error(err)
	}
	list, err := s.Client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{LabelSelector: setLabel + "=" + name})
	if err != nil {
		s.T.Error(err)
		return
	}
	for _, volume := range list.Items {
		if volume.Spec.ClaimRef == nil {
			if err := s.AwaitGone(ctx, Volumes(), "", volume.Name); err != nil {
				s.T.Error(err)
			}
		}
	}
}

package workload

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stowage-csi/stowage/tests/e2e/deployed"
)

// Class creates a class of the local driver with the parameters and immediate binding, and returns its name. The class
// is deleted when the test ends, unless the test has deleted it.
func (s *Space) Class(name string, parameters map[string]string, policy corev1.PersistentVolumeReclaimPolicy) string {
	s.T.Helper()
	return s.MakeClass(&storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: deployed.Driver, Parameters: parameters,
		ReclaimPolicy: &policy,
	})
}

// AttributesClass creates a VolumeAttributesClass of the local driver with a name unique to the test, and returns the
// name.
func (s *Space) AttributesClass(name string, parameters map[string]string) string {
	s.T.Helper()
	classes := s.Client.StorageV1().VolumeAttributesClasses()
	class, err := classes.Create(s.Context(), &storagev1.VolumeAttributesClass{
		ObjectMeta: metav1.ObjectMeta{Name: s.Namespace + "-" + name, Labels: map[string]string{label: "true"}},
		DriverName: deployed.Driver, Parameters: parameters}, metav1.CreateOptions{})
	s.Must(err)
	s.T.Cleanup(func() {
		// Claims may still refer to it: it is deleted with the last of them.
		_ = classes.Delete(context.Background(), class.Name, metav1.DeleteOptions{})
	})
	return class.Name
}

// MakeClass creates an expandable class of any driver with a name unique to the test, and returns the name.
func (s *Space) MakeClass(class *storagev1.StorageClass) string {
	s.T.Helper()
	grows := true
	class.Name, class.Labels, class.AllowVolumeExpansion = s.Namespace+"-"+class.Name, map[string]string{label: "true"},
		&grows
	_, err := s.Client.StorageV1().StorageClasses().Create(s.Context(), class, metav1.CreateOptions{})
	s.Must(err)
	s.T.Cleanup(func() {
		// The test may have deleted it.
		_ = s.Client.StorageV1().StorageClasses().Delete(context.Background(), class.Name, metav1.DeleteOptions{})
	})
	return class.Name
}

package tests

import (
	"fmt"
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// snapshotClass contains the common fields of VolumeSnapshotClass and VolumeGroupSnapshotClass, from the schemas of
// external-snapshotter v8.6.0. Its Go types would add no other check.
type snapshotClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Driver            string            `json:"driver"`
	DeletionPolicy    string            `json:"deletionPolicy"`
	Parameters        map[string]string `json:"parameters,omitempty"`
}

// types returns the kinds that may be installed.
func types() map[schema.GroupVersionKind]func() any {
	return map[schema.GroupVersionKind]func() any{
		corev1.SchemeGroupVersion.WithKind("Namespace"):             func() any { return new(corev1.Namespace) },
		corev1.SchemeGroupVersion.WithKind("ConfigMap"):             func() any { return new(corev1.ConfigMap) },
		corev1.SchemeGroupVersion.WithKind("ServiceAccount"):        func() any { return new(corev1.ServiceAccount) },
		appsv1.SchemeGroupVersion.WithKind("Deployment"):            func() any { return new(appsv1.Deployment) },
		appsv1.SchemeGroupVersion.WithKind("DaemonSet"):             func() any { return new(appsv1.DaemonSet) },
		appsv1.SchemeGroupVersion.WithKind("StatefulSet"):           func() any { return new(appsv1.StatefulSet) },
		policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"): func() any { return new(policyv1.PodDisruptionBudget) },
		networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy"):   func() any { return new(networkingv1.NetworkPolicy) },
		rbacv1.SchemeGroupVersion.WithKind("ClusterRole"):           func() any { return new(rbacv1.ClusterRole) },
		rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"):    func() any { return new(rbacv1.ClusterRoleBinding) },
		rbacv1.SchemeGroupVersion.WithKind("Role"):                  func() any { return new(rbacv1.Role) },
		rbacv1.SchemeGroupVersion.WithKind("RoleBinding"):           func() any { return new(rbacv1.RoleBinding) },
		admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingAdmissionPolicy"): func() any {
			return new(admissionregistrationv1.ValidatingAdmissionPolicy)
		},
		admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingAdmissionPolicyBinding"): func() any {
			return new(admissionregistrationv1.ValidatingAdmissionPolicyBinding)
		},
		storagev1.SchemeGroupVersion.WithKind("CSIDriver"):    func() any { return new(storagev1.CSIDriver) },
		storagev1.SchemeGroupVersion.WithKind("StorageClass"): func() any { return new(storagev1.StorageClass) },
		storagev1.SchemeGroupVersion.WithKind("VolumeAttributesClass"): func() any {
			return new(storagev1.VolumeAttributesClass)
		},

		{Group: "snapshot.storage.k8s.io", Version: "v1",
			Kind: "VolumeSnapshotClass"}: func() any { return new(snapshotClass) },
		{Group: "groupsnapshot.storage.k8s.io", Version: "v1",
			Kind: "VolumeGroupSnapshotClass"}: func() any { return new(snapshotClass) },
	}
}

// typed decodes an object into its type. A field that the type does not have fails the test.
func typed(t *testing.T, o object) any {
	t.Helper()
	value, err := strict(o)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func strict(o object) (any, error) {
	empty, known := types()[o.GroupVersionKind()]
	if !known {
		return nil, fmt.Errorf("%s: nothing of the type %s is expected", o.id(), o.GroupVersionKind())
	}
	value := empty()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, value, true); err != nil {
		return nil, fmt.Errorf("%s: %w", o.id(), err)
	}
	return value, nil
}

func TestStrict(t *testing.T) {
	each(t, func(t *testing.T, objects []object) {
		for _, o := range objects {
			typed(t, o)
		}
	})
}

// TestStrictRefuses tests the check.
func TestStrictRefuses(t *testing.T) {
	driver := find(t, kustomized(t, installs()[0].folder), "CSIDriver/local.csi.stowage.dev")
	if err := unstructured.SetNestedField(driver.Object, true, "spec", "attachRequird"); err != nil {
		t.Fatal(err)
	}
	if _, err := strict(driver); err == nil {
		t.Error("a misspelt field passes")
	}
}

// pods returns the pod templates by the IDs of the objects that create the pods.
func pods(t *testing.T, objects []object) map[string]corev1.PodTemplateSpec {
	t.Helper()
	templates := map[string]corev1.PodTemplateSpec{}
	for _, o := range objects {
		switch w := typed(t, o).(type) {
		case *appsv1.Deployment:
			templates[o.id()] = w.Spec.Template
		case *appsv1.DaemonSet:
			templates[o.id()] = w.Spec.Template
		case *appsv1.StatefulSet:
			templates[o.id()] = w.Spec.Template
		}
	}
	return templates
}

func container(t *testing.T, pod corev1.PodTemplateSpec, name string) corev1.Container {
	t.Helper()
	all := containers(pod)
	i := slices.IndexFunc(all, func(c corev1.Container) bool { return c.Name == name })
	if i < 0 {
		t.Fatalf("there is no container %s", name)
	}
	return all[i]
}

// containers returns all containers of a pod, including those that start before the others and end after them.
func containers(pod corev1.PodTemplateSpec) []corev1.Container {
	return slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers)
}

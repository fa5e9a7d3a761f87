package tests

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// TestHello checks the claim and the pod with which the guides end: the claim's class is one of the example classes of
// its backend, and the pod uses the claim.
func TestHello(t *testing.T) {
	for backend, classes := range map[string]string{"local": examples, "nfs": nfsExamples, "ebs": ebsExamples} {
		file := "../kubernetes/examples/hello/" + backend + ".yaml"
		first, second, _ := strings.Cut(readText(t, file), "\n---\n")
		var claim corev1.PersistentVolumeClaim
		var pod corev1.Pod
		if err := errors.Join(yaml.UnmarshalStrict([]byte(first), &claim),
			yaml.UnmarshalStrict([]byte(second), &pod)); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if claim.Spec.StorageClassName == nil {
			t.Fatalf("%s: the claim names no class", file)
		}
		find(t, kustomized(t, classes), "StorageClass/"+*claim.Spec.StorageClassName)
		if len(pod.Spec.Volumes) != 1 || pod.Spec.Volumes[0].PersistentVolumeClaim == nil ||
			pod.Spec.Volumes[0].PersistentVolumeClaim.ClaimName != claim.Name {
			t.Errorf("%s: the pod has the volumes %v, want the claim %s", file, pod.Spec.Volumes, claim.Name)
		}
	}
}

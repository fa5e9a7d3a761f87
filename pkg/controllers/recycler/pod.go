package recycler

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// target is the path of the volume in a scrub pod.
const target = "/volume"

// meta returns the metadata of the scrub claim and pod. The label has the UID of their volume.
func (r *reconciler) meta(v view) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: r.Namespace, Name: v.record.Name,
		Labels:      map[string]string{v1alpha1.RecyclingAnnotation: string(v.volume.UID)},
		Annotations: map[string]string{v1alpha1.RecycledVolumeAnnotation: v.volume.Name},
	}
}

func (r *reconciler) newClaim(v view) *corev1.PersistentVolumeClaim {
	spec := v.volume.Spec
	return &corev1.PersistentVolumeClaim{ObjectMeta: r.meta(v), Spec: corev1.PersistentVolumeClaimSpec{
		VolumeName: v.volume.Name, StorageClassName: &spec.StorageClassName, AccessModes: spec.AccessModes,
		VolumeMode:                spec.VolumeMode,
		VolumeAttributesClassName: spec.VolumeAttributesClassName,
		Resources: corev1.VolumeResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceStorage: *spec.Capacity.Storage()},
		},
	}}
}

// newPod returns the scrub pod. It runs as root, to remove the files of any owner, with two capabilities and without a
// token.
func (r *reconciler) newPod(v view) *corev1.Pod {
	no, root, seconds := false, int64(0), int64(r.Deadline.Seconds())
	meta := r.meta(v)
	meta.Finalizers = []string{v1alpha1.RecyclerFinalizer}
	return &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, ActiveDeadlineSeconds: &seconds,
		AutomountServiceAccountToken: &no, EnableServiceLinks: &no, Containers: []corev1.Container{r.container(v.volume)},
		SecurityContext: &corev1.PodSecurityContext{
			RunAsUser: &root, RunAsGroup: &root,
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Tolerations: tolerations(v.volume, v.users.nodes),
		Volumes: []corev1.Volume{{Name: "volume", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: v.record.Name},
		}}},
	}}
}

// container returns the container of the scrub, with the capabilities for the files of other owners and in sticky
// directories.
func (r *reconciler) container(volume *corev1.PersistentVolume) corev1.Container {
	no, yes := false, true
	container := corev1.Container{
		Name: "scrub", Image: r.Image, ImagePullPolicy: corev1.PullIfNotPresent, Command: []string{"/stowage"},
		Args: []string{"scrub", "--path=" + target},
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("32Mi"),
		}},
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes,
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"},
				Add: []corev1.Capability{"DAC_OVERRIDE", "FOWNER"}},
		},
	}
	if volume.Spec.VolumeMode != nil && *volume.Spec.VolumeMode == corev1.PersistentVolumeBlock {
		container.VolumeDevices = []corev1.VolumeDevice{{Name: "volume", DevicePath: target}}
	} else {
		container.VolumeMounts = []corev1.VolumeMount{{Name: "volume", MountPath: target}}
	}
	return container
}

// tolerations returns tolerations for the taints that people gave to the nodes on which the volume can be mounted. It
// omits the taints that Kubernetes gives to nodes with problems: they keep the pod away.
func tolerations(volume *corev1.PersistentVolume, nodes []corev1.Node) (all []corev1.Toleration) {
	for i := range nodes {
		if !canMount(&nodes[i], volume) {
			continue
		}
		for _, taint := range nodes[i].Spec.Taints {
			one := corev1.Toleration{Key: taint.Key, Operator: corev1.TolerationOpEqual, Value: taint.Value,
				Effect: taint.Effect}
			if !strings.HasPrefix(taint.Key, "node.kubernetes.io/") && !slices.Contains(all, one) {
				all = append(all, one)
			}
		}
	}
	return all
}

func isHeld(pod client.Object) bool {
	return controllerutil.ContainsFinalizer(pod, v1alpha1.RecyclerFinalizer)
}

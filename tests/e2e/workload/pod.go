package workload

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stowage-csi/stowage/tests/e2e/cluster/images"
)

// Mount is a claim in a pod.
type Mount struct {
	Claim    string
	Path     string // of the mount, or of the device
	SubPath  string
	ReadOnly bool
	Device   bool
}

// Pod describes a pod that runs a shell script to its end. The functions change its defaults.
func Pod(name, script string, mounts []Mount, changes ...func(*corev1.PodSpec)) *corev1.Pod {
	grace, token := int64(1), false
	container := corev1.Container{
		Name: "main", Image: images.BusyBox, ImagePullPolicy: corev1.PullNever, Command: []string{"sh", "-c", script},
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: &grace,
			AutomountServiceAccountToken: &token,
			EnableServiceLinks:           &token,
		},
	}
	for _, m := range mounts {
		if m.Device {
			container.VolumeDevices = append(container.VolumeDevices, corev1.VolumeDevice{Name: m.Claim, DevicePath: m.Path})
		} else {
			container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{
				Name: m.Claim, MountPath: m.Path, SubPath: m.SubPath, ReadOnly: m.ReadOnly,
			})
		}
		pod.Spec.Volumes = append(pod.Spec.Volumes, volume(m.Claim))
	}
	pod.Spec.Containers = []corev1.Container{container}
	for _, change := range changes {
		change(&pod.Spec)
	}
	return pod
}

func volume(claim string) corev1.Volume {
	return corev1.Volume{Name: claim, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
	}}
}

// At returns the mount of a claim at /data.
func At(claim string) []Mount { return []Mount{{Claim: claim, Path: "/data"}} }

// MakePod creates a pod.
func (s *Space) MakePod(pod *corev1.Pod) {
	s.T.Helper()
	_, err := s.Client.CoreV1().Pods(s.Namespace).Create(s.Context(), pod, metav1.CreateOptions{})
	s.Must(err)
}

// Run creates a pod, waits until it has succeeded, deletes it, and returns its output.
func (s *Space) Run(pod *corev1.Pod) string {
	s.T.Helper()
	s.MakePod(pod)
	out := s.Succeeded(pod.Name)
	s.DeletePod(pod.Name)
	return out
}

// Succeeded waits until a pod has ended, and returns its output. It fails the test if the pod failed.
func (s *Space) Succeeded(name string) string {
	s.T.Helper()
	pod := Until(s, Pods(), name, "has ended", func(p *corev1.Pod) bool {
		return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	})
	out := s.Log(name)
	if pod.Status.Phase == corev1.PodFailed {
		s.T.Fatalf("the pod %s failed; it said:\n%s\n%s", name, out, s.explain(Pods(), name))
	}
	return out
}

// Start creates a pod and waits until it runs.
func (s *Space) Start(pod *corev1.Pod) *corev1.Pod {
	s.T.Helper()
	s.MakePod(pod)
	return s.Running(pod.Name)
}

// Running waits until a pod runs.
func (s *Space) Running(name string) *corev1.Pod {
	s.T.Helper()
	return Until(s, Pods(), name, "runs", func(p *corev1.Pod) bool {
		if p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded {
			s.T.Errorf("the pod %s has ended with %s", name, p.Status.Phase)
			return true
		}
		return Ready(p)
	})
}

// Ready reports whether a pod is ready.
func Ready(p *corev1.Pod) bool {
	for _, condition := range p.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// Log returns a pod's output.
func (s *Space) Log(pod string) string {
	s.T.Helper()
	text, err := s.log(s.Context(), s.Namespace, pod, &corev1.PodLogOptions{})
	s.Must(err)
	return strings.TrimSpace(text)
}

// Exec runs a command in a pod.
func (s *Space) Exec(pod string, argv ...string) string {
	s.T.Helper()
	out, err := s.Kubectl(s.Context(), append([]string{"exec", "--namespace", s.Namespace, pod, "--"}, argv...)...)
	s.Must(err)
	return out
}

// DeletePod deletes a pod and waits until it is gone.
func (s *Space) DeletePod(name string) {
	s.T.Helper()
	s.Must(s.Client.CoreV1().Pods(s.Namespace).Delete(s.Context(), name, metav1.DeleteOptions{}))
	s.UntilGone(Pods(), name)
}

// change applies a JSON merge patch.
func (s *Space) change(kind Kind, name, patch string) {
	s.T.Helper()
	_, err := s.objects(kind, s.Namespace).Patch(s.Context(), name, types.MergePatchType, []byte(patch),
		metav1.PatchOptions{})
	if err != nil {
		s.T.Fatalf("change the %s %s by %s: %v", kind.Name, name, patch, err)
	}
}

// ReplacePod deletes a pod of a controller and waits until its successor of the same name is ready.
func (c *Cluster) ReplacePod(ctx context.Context, namespace, name string, options metav1.DeleteOptions) error {
	old, err := c.Client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := c.Client.CoreV1().Pods(namespace).Delete(ctx, name, options); err != nil {
		return err
	}
	_, err = Await(ctx, c, Pods(), namespace, name, func(p *corev1.Pod) bool { return p.UID != old.UID && Ready(p) })
	if err != nil {
		return fmt.Errorf("the pod %s does not return: %w", name, err)
	}
	return nil
}

package failover

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// drained deletes the pods of a node, and the driver's pod before the pod with the volume. The driver serves until the
// volume is unmounted.
func (s *scene) drained() {
	s.move("lives 3")
	s.kubectl("cordon", lost)
	before := s.driverOn(lost)
	s.kubectl("delete", "pod", before.Name, "--namespace=stowage-system", "--wait=false")
	// Stimulus: a driver that does not wait ends within this time.
	<-time.After(10 * time.Second)
	if now := s.driverOn(lost); now.UID != before.UID || !serves(now) || !s.registered(s.Context(), lost) {
		s.Errorf("the driver has ended, and a pod uses a volume there: %+v", now.Status.ContainerStatuses)
	}
	s.kubectl("delete", "pod", "web-0", "--wait=false")
	begin := time.Now()
	s.eventually("the driver has ended", patience, func(ctx context.Context) error {
		pod, err := s.Client.CoreV1().Pods("stowage-system").Get(ctx, before.Name, metav1.GetOptions{})
		if err == nil && serves(*pod) {
			return errors.New("it serves")
		}
		return client.IgnoreNotFound(err)
	})
	s.passed("the driver on a drained node has ended", begin)
	if used := s.node(s.Context()).Status.VolumesInUse; len(used) > 0 {
		s.Errorf("the driver has ended, and the kubelet uses %q", used)
	}
	s.eventually("the pod runs elsewhere", patience,
		func(context.Context) error { return s.says(kept, "/data/file: OK\nlives 4") })
	s.passed("the pod runs elsewhere after a drain", begin)
	s.kubectl("uncordon", lost)
	s.kubectl("rollout", "status", "daemonset/stowage-ebs-node", "--namespace=stowage-system", "--timeout=4m")
}

// move moves the pod to the node that will be lost.
func (s *scene) move(lives string) {
	s.kubectl("cordon", kept)
	s.kubectl("delete", "pod", "web-0")
	s.eventually("the pod is there", patience,
		func(context.Context) error { return s.says(lost, "/data/file: OK\n"+lives) })
	s.kubectl("uncordon", kept)
}

// driverOn returns the driver's pod on a node.
func (s *scene) driverOn(node string) corev1.Pod {
	pods, err := s.Client.CoreV1().Pods("stowage-system").List(s.Context(), metav1.ListOptions{
		LabelSelector: "app.kubernetes.io/component=node", FieldSelector: "spec.nodeName=" + node})
	s.must(err)
	if len(pods.Items) != 1 {
		s.Fatalf("%d pods of the driver are on %s", len(pods.Items), node)
	}
	return pods.Items[0]
}

func serves(pod corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.ContainerStatuses,
		func(c corev1.ContainerStatus) bool { return c.Name == "stowage" && c.State.Running != nil })
}

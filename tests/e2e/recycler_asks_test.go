package e2e

import (
	"context"
	"fmt"
	"io"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/tests/e2e/workload"
)

// TestRecyclerAsksTheDriver deletes a pod by force, while a process of its node writes to the pod's volume: the node
// cannot unmount it. The node is Ready and the pod's object is gone, so that only the node's driver knows of the use.
// The volume is scrubbed once the process has ended, and the next tenant finds nothing of the first.
func TestRecyclerAsksTheDriver(t *testing.T) {
	f := found{cluster(t).NewSpace(t)}
	f.installVolumes()
	for _, pool := range []string{"image", "directory"} {
		t.Run(pool, func(t *testing.T) { outlived(cluster(t).NewSpace(t), pool) })
	}
}

// outlived recycles a volume whose writer outlives its pod.
func outlived(s *workload.Space, pool string) {
	s.T.Helper()
	s.T.Cleanup(func() { // Other tests deploy the recycler, too.
		if err := s.AwaitGone(context.Background(), workload.Namespaces(), "", recyclerNamespace); err != nil {
			s.T.Error(err)
		}
	})
	deployRecycler(s)
	r := &recycled{s: s, name: "late", pool: pool, mounts: workload.At}
	r.class = s.Class(r.name, map[string]string{"pool": pool}, corev1.PersistentVolumeReclaimRetain)
	s.MakeClaim(workload.Claim("late-a", r.class, "16Mi"))
	pod := s.Start(workload.Pod("late-a", leaveTraces+"\necho written; sleep 1000000", workload.At("late-a")))
	written(s, "late-a")
	r.volume = s.Bound("late-a").Name
	s.ChangeVolume(r.volume, fmt.Sprintf(`{"metadata":{"annotations":{%q:"true"}}}`, v1alpha1.RecycleAnnotation))
	end := writesOn(s, pod, r.volume)
	defer end()

	byForce := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
	s.Must(s.Client.CoreV1().Pods(s.Namespace).Delete(s.Context(), "late-a", byForce))
	s.UntilGone(workload.Pods(), "late-a")
	s.DeleteClaim("late-a")
	s.Event(workload.Volumes(), r.volume, "RecycleWaits", "the node "+s.Node+" reported last that it uses the volume",
		"published at")
	notTaken(s, r.volume)
	end()
	r.useAgain()
	r.end()
	nothingOfScrubs(s)
}

// writesOn has a process of the node write to a pod's volume until end is called.
func writesOn(s *workload.Space, pod *corev1.Pod, volume string) (end func()) {
	s.T.Helper()
	file := fmt.Sprintf("/var/lib/kubelet/pods/%s/volumes/kubernetes.io~csi/%s/mount/late", pod.UID, volume)
	cmd, err := s.NodeCommand(s.Context(), s.Node, "sh", "-c", `exec 3>>"$0" || exit 1
(while echo "`+earlier+`" >&3; do sleep 0.2; done) & writer=$!
echo in; read end; kill $writer; wait`, file)
	s.Must(err)
	in, err := cmd.StdinPipe()
	s.Must(err)
	out, err := cmd.StdoutPipe()
	s.Must(err)
	s.Must(cmd.Start())
	if said, err := io.ReadAll(io.LimitReader(out, 2)); err != nil || string(said) != "in" {
		s.T.Fatalf("no process writes to the volume: %q, %v", said, err)
	}
	return func() {
		_ = in.Close()
		_ = cmd.Wait() // It ends when its input ends. A second call does nothing.
	}
}

// notTaken checks that a volume still names the claim of its tenant, and that nothing scrubs it.
func notTaken(s *workload.Space, volume string) {
	s.T.Helper()
	v, err := s.Client.CoreV1().PersistentVolumes().Get(s.Context(), volume, metav1.GetOptions{})
	s.Must(err)
	if v.Status.Phase != corev1.VolumeReleased || v.Spec.ClaimRef == nil || v.Spec.ClaimRef.Namespace != s.Namespace {
		s.T.Errorf("VIOLATION: a volume in use is %s and names %v", v.Status.Phase, v.Spec.ClaimRef)
	}
	pods, err := s.Client.CoreV1().Pods(recyclerNamespace).List(s.Context(),
		metav1.ListOptions{LabelSelector: v1alpha1.RecyclingAnnotation})
	s.Must(err)
	if len(pods.Items) > 0 {
		s.T.Errorf("VIOLATION: while the volume is in use, %s scrubs", pods.Items[0].Name)
	}
}

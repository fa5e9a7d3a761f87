package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stowage-csi/stowage/tests/e2e/deployed"
	"github.com/stowage-csi/stowage/tests/e2e/nodeview"
	"github.com/stowage-csi/stowage/tests/e2e/workload"
)

// works writes, reads back and compares until it is told to end, and prints the number of rounds. Any error ends it.
const works = `set -e; n=0
echo started > /data/started
until [ -e /data/end ]; do
  n=$((n+1)); dd if=/dev/urandom of=/tmp/new bs=64k count=1 2>/dev/null
  dd if=/tmp/new of=/data/file-$((n%8)) bs=64k conv=fsync 2>/dev/null
  cmp /tmp/new /data/file-$((n%8)); echo $n > /data/rounds; sleep 0.5
done
echo rounds $n`

// inAll is a shell pattern of the mounts of all pods' volumes on the node.
const inAll = "/var/lib/kubelet/pods/*/volumes/kubernetes.io~csi/*/mount"

// TestRestarts restarts the driver's pod, kills the driver, and kills the kubelet while pods write. There is no I/O
// error and no unmount, and all claims and pods are usable afterwards.
func TestRestarts(t *testing.T) {
	c := cluster(t)
	s := c.NewSpace(t)
	names := pairs(s, *pods, works)
	names = append(names, "xfs")
	s.MakeClaim(workload.Claim("xfs", xfs, "400Mi"))
	s.MakePod(workload.Pod("xfs", works, workload.At("xfs")))
	for _, name := range names {
		s.Running(name)
		s.Bound(name)
	}
	before := mounts(s)
	for _, restart := range []struct {
		what string
		do   func(context.Context, *workload.Cluster) error
	}{
		{"the driver's pod is deleted", replaceDriver},
		{"the driver's pod is deleted without grace", replaceDriverAtOnce},
		{"the driver is killed", killDriver},
		{"the kubelet is killed", killKubelet},
	} {
		// All pods have started to write.
		goOn(s, names)
		begun := time.Now()
		s.Must(restart.do(t.Context(), c))
		t.Logf("%s: %v until all is ready again", restart.what, time.Since(begun).Round(100*time.Millisecond))
		goOn(s, names)
		if after := mounts(s); !slices.Equal(before, after) {
			t.Fatalf("%s: the mounts were\n%v\nand are\n%v", restart.what, before, after)
		}
	}
	operable(s, names)
}

// mounts returns the mounts of the test's volumes with their IDs.
func mounts(s *workload.Space) []string {
	s.T.Helper()
	view, err := s.Look(s.Context())
	s.Must(err)
	var list []string
	for _, m := range view.Mounts {
		list = append(list, m.ID+" "+m.Target)
	}
	slices.Sort(list)
	return list
}

// goOn waits until each pod has written more without a restart.
func goOn(s *workload.Space, names []string) {
	s.T.Helper()
	first := rounds(s)
	s.Must(workload.Eventually(s.Context(), "all pods go on", func() error {
		now, more := rounds(s), 0
		for volume, n := range now {
			if n > first[volume] {
				more++
			}
		}
		if more != len(names) {
			return fmt.Errorf("%d of %d have written more: of %v they are at %v", more, len(names), first, now)
		}
		return nil
	}))
	for _, name := range names {
		pod, err := s.Client.CoreV1().Pods(s.Namespace).Get(s.Context(), name, metav1.GetOptions{})
		s.Must(err)
		if pod.Status.Phase != corev1.PodRunning || pod.Status.ContainerStatuses[0].RestartCount != 0 {
			s.T.Errorf("the pod %s is %s", name, pod.Status.Phase)
		}
	}
}

// rounds reads the number of rounds of each pod, by the mount of its volume, from the node: the kubelet may be down.
func rounds(s *workload.Space) map[string]int {
	s.T.Helper()
	out, err := s.OnNode(s.Context(), "sh", "-c", "grep -H . "+inAll+"/rounds")
	s.Must(err)
	found := map[string]int{}
	for line := range strings.Lines(out) {
		// A file that is being written is empty, and yields no line.
		if file, text, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			n, err := strconv.Atoi(text)
			s.Must(err)
			found[file] = n
		}
	}
	return found
}

// operable ends the pods, which report that they could read back all their data. It grows one claim and snapshots
// another.
func operable(s *workload.Space, names []string) {
	s.T.Helper()
	s.Snapshot("after", "stowage-local", "pair-0")
	ask(s, "xfs", "500Mi")
	grown(s, "xfs", "500Mi")
	_, err := s.OnNode(s.Context(), "sh", "-c", "for mount in "+inAll+"; do touch $mount/end; done")
	s.Must(err)
	for _, name := range names {
		if out := s.Succeeded(name); !strings.HasPrefix(out, "rounds ") {
			s.T.Errorf("the pod %s says %q", name, out)
		}
	}
	s.DeletePod("pair-0")
	s.Run(workload.Pod("later", "cat /data/started", workload.At("pair-0")))
}

func replaceDriver(ctx context.Context, c *workload.Cluster) error {
	return c.ReplacePod(ctx, deployed.Namespace, deployed.Pod, metav1.DeleteOptions{})
}

func replaceDriverAtOnce(ctx context.Context, c *workload.Cluster) error {
	return c.ReplacePod(ctx, deployed.Namespace, deployed.Pod, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
}

// killDriver kills the driver, and waits until its pod is ready again.
func killDriver(ctx context.Context, c *workload.Cluster) error {
	if err := endContainer(ctx, c, deployed.Container); err != nil {
		return err
	}
	_, err := workload.Await(ctx, c, workload.Pods(), deployed.Namespace, deployed.Pod, workload.Ready)
	return err
}

// endContainer kills the process of a container of the driver's pod, and waits until it has started again.
func endContainer(ctx context.Context, c *workload.Cluster, name string) error {
	pod, err := c.Client.CoreV1().Pods(deployed.Namespace).Get(ctx, deployed.Pod, metav1.GetOptions{})
	if err != nil {
		return err
	}
	id := strings.TrimPrefix(container(pod, name).ContainerID, "containerd://")
	before := container(pod, name).RestartCount
	if _, err := c.OnNode(ctx, nodeview.ContainerSignal(c.Cluster, id, "SIGKILL")...); err != nil {
		return err
	}
	_, err = workload.Await(ctx, c, workload.Pods(), deployed.Namespace, deployed.Pod, func(p *corev1.Pod) bool {
		return container(p, name).RestartCount > before && container(p, name).State.Running != nil
	})
	return err
}

func container(pod *corev1.Pod, name string) corev1.ContainerStatus {
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name == name {
			return status
		}
	}
	return corev1.ContainerStatus{}
}

// killKubelet kills the kubelet, which is started again, and waits until it reports the node as ready.
func killKubelet(ctx context.Context, c *workload.Cluster) error {
	pid, err := c.OnNode(ctx, "pidof", "kubelet")
	if err != nil {
		return err
	}
	killed := time.Now()
	if _, err := c.OnNode(ctx, "kill", "-KILL", pid); err != nil {
		return err
	}
	if err := workload.Eventually(ctx, "another kubelet", func() error {
		now, err := c.OnNode(ctx, "pidof", "kubelet")
		if err == nil && now == pid {
			err = fmt.Errorf("it is still process %s", pid)
		}
		return err
	}); err != nil {
		return err
	}
	return nodeReady(ctx, c, killed)
}

// nodeReady waits until the node has reported itself ready after the given time and the driver's pod is ready.
func nodeReady(ctx context.Context, c *workload.Cluster, after time.Time) error {
	_, err := workload.Await(ctx, c, workload.Nodes(), "", c.Node, func(n *corev1.Node) bool {
		for _, condition := range n.Status.Conditions {
			if condition.Type == corev1.NodeReady {
				return condition.Status == corev1.ConditionTrue && condition.LastHeartbeatTime.After(after)
			}
		}
		return false
	})
	if err != nil {
		return err
	}
	_, err = workload.Await(ctx, c, workload.Pods(), deployed.Namespace, deployed.Pod, workload.Ready)
	return err
}

// TestPowerCycle cuts the node's power while pods write, and turns it on again. The pods find their data.
func TestPowerCycle(t *testing.T) {
	c := cluster(t)
	s := c.NewSpace(t)
	script := "set -e; if [ -e /data/sum ]; then md5sum -c /data/sum; echo again >> /data/boots; else " + writes +
		" echo first > /data/boots; fi; sync; echo boots $(wc -l < /data/boots); " +
		"while true; do dd if=/dev/urandom of=/data/noise bs=64k count=4 conv=fsync 2>/dev/null; sleep 0.1; done"
	classes := []string{ext4, xfs, directory}
	for _, class := range classes {
		s.MakeClaim(workload.Claim(class, class, "400Mi"))
		s.MakePod(workload.Pod(class, script, workload.At(class),
			func(p *corev1.PodSpec) { p.RestartPolicy = corev1.RestartPolicyAlways }))
	}
	for _, class := range classes {
		s.Running(class)
		s.Must(workload.Eventually(t.Context(), "the first data of "+class,
			func() error { return says(s, class, "boots 1") }))
	}
	begun := time.Now()
	s.Must(c.StopNode(t.Context(), c.Node))
	s.Must(workload.Eventually(t.Context(), "the end of the node", func() error {
		_, err := c.OnNode(t.Context(), "true")
		if err == nil {
			return errors.New("a command can still be run on it")
		}
		return nil
	}))
	s.Must(c.StartNode(c.Node))
	s.Must(nodeReady(t.Context(), c, begun))
	for _, class := range classes {
		s.Must(workload.Eventually(t.Context(), "the data of "+class,
			func() error { return says(s, class, "/data/file: OK\nboots 2") }))
	}
	t.Logf("the pods have their data again %v after the power was cut", time.Since(begun).Round(100*time.Millisecond))
}

// says checks the output of the pod's current container.
func says(s *workload.Space, pod, want string) error {
	out, err := s.Kubectl(s.Context(), "logs", "--namespace", s.Namespace, pod)
	if err == nil && out != want {
		err = fmt.Errorf("it says %q, not %q", out, want)
	}
	return err
}

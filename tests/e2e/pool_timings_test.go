package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stowage-csi/stowage/tests/e2e/deployed"
	"github.com/stowage-csi/stowage/tests/e2e/nodeview"
	"github.com/stowage-csi/stowage/tests/e2e/workload"
)

// bindQPS is the rate limit of the manager's binder during the measurement.
const bindQPS = 300

// TestPoolTimings measures, with -timings only, claims that find a volume ready, with the manager's binder and without
// it, and the same number of dynamic claims of the same size. It asserts only that every claim completes.
func TestPoolTimings(t *testing.T) {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 4, 2, ' ', 0)
	fmt.Fprintf(table, "\n%d claims at once\tp50, s\tp99, s\tall, s\ta second\n", 4**claims)
	measured := func(name string, pooled, frozen bool) {
		t.Run(name, func(t *testing.T) { manyClaims(t, table, name, 4**claims, pooled, frozen) })
	}
	measured("dynamic", false, false)
	measured("pool, bound by Kubernetes", true, false)
	binderOn(t)
	measured("pool, bound by the manager", true, false)
	measured("pool, and the driver is frozen", true, true)
	fmt.Fprintf(table, "%d claims, each with a pod\tp50, s\tp99, s\tall, s\ta second\n", *claims)
	for _, pooled := range []bool{false, true} {
		name := fmt.Sprintf("claim to running pod, pooled %t", pooled)
		t.Run(name, func(t *testing.T) { manyPods(t, table, name, *claims, pooled) })
	}
	_ = table.Flush() // It writes to memory.
	t.Log(text.String())
}

// binderOn enables the manager's binder until the test ends.
func binderOn(t *testing.T) {
	t.Helper()
	c := cluster(t)
	set := func(ctx context.Context, op string) {
		sets := c.Client.AppsV1().StatefulSets(deployed.Namespace)
		current, err := sets.Get(ctx, deployed.StatefulSet, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for i, one := range current.Spec.Template.Spec.Containers {
			if one.Name != deployed.Manager {
				continue
			}
			patch := fmt.Sprintf(`[{"op":"add","path":"/spec/template/spec/containers/%d/args/-","value":"--bind-api-qps=%d"}]`,
				i, bindQPS)
			if op == "remove" {
				patch = fmt.Sprintf(`[{"op":"remove","path":"/spec/template/spec/containers/%d/args/%d"}]`, i, len(one.Args)-1)
			}
			if _, err := sets.Patch(ctx, deployed.StatefulSet, types.JSONPatchType, []byte(patch),
				metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		for _, args := range [][]string{
			{"rollout", "status", "statefulset", deployed.StatefulSet, "--namespace", deployed.Namespace, "--timeout", "3m"},
			{"wait", "csinode/" + c.Node, "--for", "jsonpath={.spec.drivers[?(@.name=='" + deployed.Driver + "')].topologyKeys}",
				"--timeout", "3m"},
		} {
			if _, err := c.Kubectl(ctx, args...); err != nil {
				t.Fatal(err)
			}
		}
	}
	set(t.Context(), "add")
	t.Cleanup(func() { set(context.Background(), "remove") })
}

// pool creates a class and, if pooled, a set with count volumes of that class ready.
func pool(s *workload.Space, count int, pooled bool) (class string) {
	s.T.Helper()
	class = s.Class("timed", map[string]string{"pool": "image"}, corev1.PersistentVolumeReclaimDelete)
	if pooled {
		n := int32(count) // It is small.
		s.SetIs(s.MakeSet(s.Set("timed", class, n, n)), "Filled", n, 0)
	}
	return class
}

// manyClaims creates claims at once, and adds the times until they are bound to the table. If frozen, the driver is
// stopped during the test, so that a claim that needs it would not complete.
func manyClaims(t *testing.T, table *tabwriter.Writer, name string, count int, pooled, frozen bool) {
	s := cluster(t).NewSpace(t)
	class := pool(s, count, pooled)
	if frozen {
		freeze(s)
	}
	begun, ends := time.Now(), map[string]time.Time{}
	starts := atOnce(s, count, func(ctx context.Context, name string) error {
		_, err := s.Client.CoreV1().PersistentVolumeClaims(s.Namespace).Create(ctx, workload.Claim(name, class, "16Mi"),
			metav1.CreateOptions{})
		return err
	})
	s.Must(s.EachClaim(10*time.Minute, func(claim *corev1.PersistentVolumeClaim) bool {
		if claim.Status.Phase == corev1.ClaimBound && ends[claim.Name].IsZero() {
			ends[claim.Name] = time.Now()
		}
		return len(ends) == count
	}))
	report(table, name, starts(), ends, begun)
	s.Volumes() // So that the end of the test checks them.
	noneLost(s)
}

// manyPods creates claims, each with its pod, and adds the times until the pods run to the table.
func manyPods(t *testing.T, table *tabwriter.Writer, name string, count int, pooled bool) {
	s := cluster(t).NewSpace(t)
	class := pool(s, count, pooled)
	begun, ends := time.Now(), map[string]time.Time{}
	starts := atOnce(s, count, func(ctx context.Context, name string) error {
		_, err := s.Client.CoreV1().PersistentVolumeClaims(s.Namespace).Create(ctx, workload.Claim(name, class, "16Mi"),
			metav1.CreateOptions{})
		if err != nil {
			return err
		}
		_, err = s.Client.CoreV1().Pods(s.Namespace).Create(ctx, workload.Pod(name, "exec sleep 10000", workload.At(name)),
			metav1.CreateOptions{})
		return err
	})
	for i := range count {
		for _, condition := range s.Running(nth(i)).Status.Conditions {
			if condition.Type == corev1.PodReady {
				ends[nth(i)] = condition.LastTransitionTime.Time // In whole seconds.
			}
		}
	}
	report(table, name, starts(), ends, begun)
	noneLost(s)
}

func nth(i int) string { return fmt.Sprintf("claim-%d", i) }

// atOnce calls create for count names, several at a time. The returned function waits for all calls and returns their
// start times.
func atOnce(s *workload.Space, count int,
	create func(ctx context.Context, name string) error) func() map[string]time.Time {
	var mu sync.Mutex
	var group sync.WaitGroup
	starts := map[string]time.Time{}
	next := make(chan string, count)
	for i := range count {
		next <- nth(i)
	}
	close(next)
	for range 8 {
		group.Go(func() {
			for name := range next {
				now := time.Now()
				if err := create(s.Context(), name); err != nil {
					s.T.Error(err)
				}
				mu.Lock()
				starts[name] = now
				mu.Unlock()
			}
		})
	}
	return func() map[string]time.Time { group.Wait(); return starts }
}

func report(table *tabwriter.Writer, name string, starts, ends map[string]time.Time, begun time.Time) {
	var seconds []float64
	last := begun
	for one, end := range ends {
		seconds = append(seconds, end.Sub(starts[one]).Seconds())
		if end.After(last) {
			last = end
		}
	}
	total := last.Sub(begun).Seconds()
	fmt.Fprintf(table, "  %s\t%.2f\t%.2f\t%.1f\t%.1f\n", name, quantile(seconds, 0.5), quantile(seconds, 0.99), total,
		float64(len(ends))/total)
}

// freeze stops the driver's process until the test ends.
func freeze(s *workload.Space) {
	s.T.Helper()
	pod, err := s.Client.CoreV1().Pods(deployed.Namespace).Get(s.Context(), deployed.Pod, metav1.GetOptions{})
	s.Must(err)
	id := strings.TrimPrefix(container(pod, deployed.Container).ContainerID, "containerd://")
	signal := func(ctx context.Context, name string) error {
		_, err := s.OnNode(ctx, nodeview.ContainerSignal(s.Cluster.Cluster, id, name)...)
		return err
	}
	s.Must(signal(s.Context(), "SIGSTOP"))
	s.T.Cleanup(func() { _ = signal(context.Background(), "SIGCONT") }) // Its liveness probe may have caused a restart.
}

// noneLost checks that Kubernetes reports no claim of the test as lost.
func noneLost(s *workload.Space) {
	s.T.Helper()
	all, err := s.Client.CoreV1().Events(s.Namespace).List(s.Context(), metav1.ListOptions{})
	s.Must(err)
	for _, one := range all.Items {
		if one.Reason == "ClaimLost" || one.Reason == "ClaimMisbound" {
			s.T.Errorf("%s: %s: %s", one.InvolvedObject.Name, one.Reason, one.Message)
		}
	}
}

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stowage-csi/stowage/tests/e2e/deployed"
	"github.com/stowage-csi/stowage/tests/e2e/workload"
)

// TestTimings measures, with -timings only, and prints tables. It asserts only that every claim completes.
func TestTimings(t *testing.T) {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 4, 2, ' ', 0)
	fmt.Fprintf(table, "\nsidecars\t%s\n", sidecars(t))
	for _, class := range []string{ext4, xfs, directory} {
		oneByOne(t, table, class, *claims)
	}
	inBulk(t, table, 6**claims, false)
	inBulk(t, table, 2**claims, false)
	inBulk(t, table, *claims, false)
	inBulk(t, table, *claims, true)
	_ = table.Flush() // It writes to memory.
	t.Log(text.String())
}

// sidecars returns the settings of the deployed pod that bulk work depends on.
func sidecars(t *testing.T) string {
	c := cluster(t)
	pod, err := c.Client.CoreV1().Pods(deployed.Namespace).Get(t.Context(), deployed.Pod, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, container := range pod.Spec.Containers {
		if container.Name == "csi-provisioner" {
			return container.Name + " " + strings.Join(container.Args, " ")
		}
	}
	return ""
}

// oneByOne measures the time from a claim to its running pod, and the driver's share of it: the sum of its RPCs in that
// time.
func oneByOne(t *testing.T, table *tabwriter.Writer, class string, count int) {
	t.Run(class, func(t *testing.T) {
		s := cluster(t).NewSpace(t)
		var totals, shares []float64
		var rpcs []float64
		for i := range count {
			name := fmt.Sprintf("pair-%d", i)
			before := rpcSeconds(s)
			begun := time.Now()
			s.MakeClaim(workload.Claim(name, class, "400Mi"))
			s.Start(workload.Pod(name, "exec sleep 10000", workload.At(name)))
			total := time.Since(begun).Seconds()
			driver := rpcSeconds(s) - before
			totals, rpcs, shares = append(totals, total), append(rpcs, driver*1000), append(shares, 100*driver/total)
		}
		fmt.Fprintf(table, "%s, %d claims one by one\tp50\tp95\tmax\n", class, count)
		row(table, "  claim created to pod running, s", totals)
		row(table, "  of it the driver's RPCs, ms", rpcs)
		row(table, "  the driver's share, %", shares)
	})
}

func row(table *tabwriter.Writer, name string, values []float64) {
	fmt.Fprintf(table, "%s\t%.2f\t%.2f\t%.2f\n", name, quantile(values, 0.5), quantile(values, 0.95), quantile(values, 1))
}

// quantile returns the value below which the given share of the values lies. It sorts the values.
func quantile(values []float64, share float64) float64 {
	slices.Sort(values)
	return values[min(len(values)-1, int(share*float64(len(values))))]
}

// rpcSeconds returns the total time that the driver has spent in RPCs about volumes, from its metrics.
func rpcSeconds(s *workload.Space) float64 {
	s.T.Helper()
	text, err := s.Client.CoreV1().Pods(deployed.Namespace).ProxyGet("http", deployed.Pod, "9808", "/metrics",
		nil).DoRaw(s.Context())
	s.Must(err)
	sum := 0.0
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "stowage_rpc_duration_seconds_sum{") {
			continue
		}
		// These RPCs work on a volume; the others continue at any time.
		for _, method := range []string{"/CreateVolume", "/NodeStageVolume", "/NodePublishVolume"} {
			var value float64
			if _, number, ok := strings.Cut(line, "} "); ok && strings.Contains(line, method) {
				if _, err := fmt.Sscan(number, &value); err != nil {
					s.T.Fatalf("the metrics have the line %q: %v", line, err)
				}
				sum += value
			}
		}
	}
	return sum
}

// inBulk creates claims at once and deletes them at once. If pooled, a set has that many volumes ready.
func inBulk(t *testing.T, table *tabwriter.Writer, count int, pooled bool) {
	t.Run(fmt.Sprintf("%d pooled %t", count, pooled), func(t *testing.T) {
		s := cluster(t).NewSpace(t)
		class := s.Class("bulk", map[string]string{"pool": "image"}, corev1.PersistentVolumeReclaimDelete)
		if pooled {
			set := s.MakeSet(s.Set("bulk", class, int32(count), int32(count))) // It is small.
			s.SetIs(set, "Filled", int32(count), 0)                            // It is small.
		}
		begun := time.Now()
		made := map[string]time.Time{}
		var latencies []float64
		go func() {
			for i := range count {
				name := fmt.Sprintf("claim-%d", i)
				_, err := s.Client.CoreV1().PersistentVolumeClaims(s.Namespace).Create(t.Context(),
					workload.Claim(name, class, "16Mi"), metav1.CreateOptions{})
				if err != nil {
					t.Error(err)
				}
			}
		}()
		s.Must(s.EachClaim(10*time.Minute, func(claim *corev1.PersistentVolumeClaim) bool {
			switch _, known := made[claim.Name]; {
			case !known:
				made[claim.Name] = time.Now()
			case claim.Status.Phase == corev1.ClaimBound && !made[claim.Name].IsZero():
				latencies = append(latencies, time.Since(made[claim.Name]).Seconds())
				made[claim.Name] = time.Time{}
			}
			return len(latencies) == count
		}))
		total := time.Since(begun).Seconds()
		deleted := time.Now()
		claims := s.Client.CoreV1().PersistentVolumeClaims(s.Namespace)
		volumes := s.Volumes()
		s.Must(claims.DeleteCollection(context.Background(), metav1.DeleteOptions{}, metav1.ListOptions{}))
		for _, volume := range volumes {
			s.UntilGone(workload.Volumes(), volume.Name)
		}
		mean := 0.0
		for _, one := range latencies {
			mean += one / float64(count)
		}
		fmt.Fprintf(table, "%d claims at once, pooled %t\tbound after %.1f s, %.1f/s, mean latency %.1f s\tdeleted after "+
			"%.1f s\n",
			count, pooled, total, float64(count)/total, mean, time.Since(deleted).Seconds())
		row(table, "  latency p50, p95, max, s", latencies)
	})
}

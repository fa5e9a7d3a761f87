package tests

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// TestMemory checks that a container whose memory grows without limit does not take down its node. A driver that mounts
// has no limit, because the kernel would kill its filesystem checks; the same applies to the process that opens disks.
// These two, and every driver, have a target for their heap, which is below the limit if there is one.
func TestMemory(t *testing.T) {
	each(t, func(t *testing.T, objects []object) {
		for id, pod := range pods(t, objects) {
			for _, c := range containers(pod) {
				limit, limited := c.Resources.Limits[corev1.ResourceMemory]
				opens := id == disksOpener && c.Name == "disks"
				checks := opens || c.Name == "stowage" && !strings.HasPrefix(id, "Deployment/")
				if limited == checks || limited && limit.Cmp(*c.Resources.Requests.Memory()) < 0 {
					t.Errorf("%s: %s has the limit %s of memory, want one: %t", id, c.Name, limit.String(), !checks)
				}
				if c.Name == "stowage" || opens {
					checkHeap(t, id, c, limit)
				}
			}
		}
	})
}

func checkHeap(t *testing.T, id string, c corev1.Container, limit resource.Quantity) {
	t.Helper()
	i := slices.IndexFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == "GOMEMLIMIT" })
	if i < 0 {
		t.Errorf("%s: the heap of %s has no bound (GOMEMLIMIT): %v", id, c.Name, c.Env)
		return
	}
	heap, err := resource.ParseQuantity(strings.TrimSuffix(c.Env[i].Value, "B")) // Go's unit is MiB.
	if err != nil || !limit.IsZero() && heap.Cmp(limit) >= 0 {
		t.Errorf("%s: the heap of %s is bounded by %q, want less than its limit %s: %v", id, c.Name, c.Env[i].Value,
			limit.String(), err)
	}
}

// TestDescriptors checks that each driver limits its file descriptors: Kubernetes has no field for that.
func TestDescriptors(t *testing.T) {
	each(t, func(t *testing.T, objects []object) {
		for id, pod := range pods(t, objects) {
			driver, has := driverOf(t, id, pod)
			if n := maxOpenFiles(driver.Args); has && (n < 1<<13 || n > 1<<16) {
				t.Errorf("%s: the driver may open %d files, want a bound that is no hindrance", id, n)
			}
		}
	})
}

func maxOpenFiles(args []string) int {
	for _, arg := range args {
		if value, is := strings.CutPrefix(arg, "--max-open-files="); is {
			n, err := strconv.Atoi(value)
			if err == nil {
				return n
			}
		}
	}
	return 0
}

// TestLimitsAreValues checks that the chart's values change the limits, and that a heap target that Go would not accept
// is refused.
func TestLimitsAreValues(t *testing.T) {
	for _, broken := range []string{"512M", "half", "-1"} {
		if _, err := rendered(map[string]any{"memoryTarget": broken}, false); err == nil {
			t.Errorf("the heap's bound %q is accepted", broken)
		}
	}
	if _, err := rendered(map[string]any{"maxOpenFiles": 0}, false); err == nil {
		t.Error("a driver that may open no file is accepted")
	}
	objects := charted(t, map[string]any{"backend": "ebs", "memoryTarget": "2GiB", "maxOpenFiles": 9000,
		"controller": map[string]any{
			"resources": map[string]any{"limits": map[string]any{"memory": "3Gi"}},
		}}, false)
	for id, pod := range pods(t, objects) {
		c := container(t, pod, "stowage")
		limit := c.Resources.Limits.Memory().String()
		if maxOpenFiles(c.Args) != 9000 || !slices.Contains(c.Env, corev1.EnvVar{Name: "GOMEMLIMIT", Value: "2GiB"}) ||
			strings.HasPrefix(id, "Deployment/") != (limit == "3Gi") {
			t.Errorf("%s: not as the values say: %q, %v, %s", id, c.Args, c.Env, limit)
		}
	}
}

package tests

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestBackendsShareNodes checks that the releases of a cluster can be on one node: no two pods in the node's network
// have the same port, and each listens on the ports that it names.
func TestBackendsShareNodes(t *testing.T) {
	manager := map[string]any{"enabled": true}
	owner := map[int32]string{}
	for _, values := range []map[string]any{
		{"backend": "nfs", "manager": manager},
		{"backend": "ebs", "manager": manager, "node": map[string]any{"hostNetwork": true}},
	} {
		for id, pod := range pods(t, charted(t, values, false)) {
			if !pod.Spec.HostNetwork {
				continue
			}
			for _, c := range containers(pod) {
				for _, p := range c.Ports {
					if other := owner[p.ContainerPort]; other != "" {
						t.Errorf("%s and %s of %s both have port %d of a node", other, c.Name, id, p.ContainerPort)
					}
					owner[p.ContainerPort] = c.Name + " of " + id
				}
				checkListens(t, id, c)
			}
			if port, named := pod.Annotations["prometheus.io/port"], container(t, pod, "stowage").Ports[0]; port !=
				fmt.Sprint(named.ContainerPort) {
				t.Errorf("%s: Prometheus is sent to port %s, and the metrics are on %d", id, port, named.ContainerPort)
			}
		}
	}
	if nodes := "DaemonSet/stowage-system/stowage-ebs-node"; !slices.Contains(slices.Collect(maps.Values(owner)),
		"node-driver-registrar of "+nodes) {
		t.Errorf("%s has no port of a node: %v", nodes, owner)
	}
}

// checkListens checks that a container listens on a port that it names, if it listens at all.
func checkListens(t *testing.T, id string, c corev1.Container) {
	t.Helper()
	listens := flagOf(c.Args, "http-endpoint")
	if _, port, is := strings.Cut(listens, ":"); is && !slices.ContainsFunc(c.Ports,
		func(p corev1.ContainerPort) bool { return fmt.Sprint(p.ContainerPort) == port }) {
		t.Errorf("%s: %s listens at %s, which it does not name: %v", id, c.Name, listens, c.Ports)
	}
}

// TestLastPort checks that a port which no machine has is refused before it is installed.
func TestLastPort(t *testing.T) {
	onHost := map[string]any{"hostNetwork": true}
	for _, row := range []struct {
		values map[string]any
		says   string // empty if it is rendered
	}{
		{map[string]any{"backend": "local", "metricsPort": 65535}, ""},
		{map[string]any{"backend": "nfs", "metricsPort": 65525}, ""},
		{map[string]any{"backend": "nfs", "metricsPort": 65526}, "choose 65525 at most"},
		{map[string]any{"backend": "ebs", "metricsPort": 65535}, ""},
		{map[string]any{"backend": "ebs", "metricsPort": 65516, "node": onHost}, "metricsPort is 65516"},
	} {
		if _, err := rendered(row.values, false); (err == nil) != (row.says == "") ||
			err != nil && !strings.Contains(err.Error(), row.says) {
			t.Errorf("%v: rendered with %v, want %q in it", row.values, err, row.says)
		}
	}
}

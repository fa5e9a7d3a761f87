package tests

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestSharesAreReachedFromNodes checks that all of nfs runs in its node's network. A server can then distinguish nodes
// from pods by their addresses, and admit only nodes. Pods on one node share its ports, so that their ports must
// differ.
func TestSharesAreReachedFromNodes(t *testing.T) {
	for _, in := range installs() {
		if in.backend == "nfs" {
			t.Run(in.name, func(t *testing.T) { checkReachedFromNodes(t, in) })
		}
	}
}

func checkReachedFromNodes(t *testing.T, in install) {
	t.Helper()
	owner := map[int32]string{}
	for id, pod := range pods(t, kustomized(t, in.folder)) {
		if !pod.Spec.HostNetwork || pod.Spec.DNSPolicy != "ClusterFirstWithHostNet" {
			t.Errorf("%s is in the pods' network (%t, %s): exports would have to be open to pods", id, pod.Spec.HostNetwork,
				pod.Spec.DNSPolicy)
		}
		for _, c := range containers(pod) {
			for _, p := range c.Ports {
				if other := owner[p.ContainerPort]; other != "" {
					t.Errorf("%s and %s of %s both have port %d of a node", other, c.Name, id, p.ContainerPort)
				}
				owner[p.ContainerPort] = c.Name + " of " + id
			}
		}
		for _, c := range containers(pod) {
			for _, arg := range c.Args {
				endpoint, is := strings.CutPrefix(arg, "--http-endpoint=")
				if _, port, _ := strings.Cut(endpoint, ":"); is &&
					!slices.ContainsFunc(ports(owner, id), func(p int32) bool { return fmt.Sprint(p) == port }) {
					t.Errorf("%s of %s listens on port %s, which it does not name", c.Name, id, port)
				}
			}
		}
		driver := container(t, pod, "stowage")
		if port := fmt.Sprint(driver.Ports[0].ContainerPort); pod.Annotations["prometheus.io/port"] != port {
			t.Errorf("%s: Prometheus is sent to port %s, and the metrics are on %s", id, pod.Annotations["prometheus.io/port"],
				port)
		}
	}
}

// ports returns the ports of an object's containers.
func ports(owner map[int32]string, id string) (all []int32) {
	for port, who := range owner {
		if strings.HasSuffix(who, " of "+id) {
			all = append(all, port)
		}
	}
	return all
}

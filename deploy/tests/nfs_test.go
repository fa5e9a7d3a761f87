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

// TestPlacesOfShares checks that the nodes' pods get the places that the configured shares have, and no others: with
// more or fewer, the driver would not start.
func TestPlacesOfShares(t *testing.T) {
	shares := func(topology map[string]any) map[string]any {
		return map[string]any{"shares": []any{
			map[string]any{"name": "a", "server": "b", "share": "/c", "topology": topology}}}
	}
	zone, zoned := []any{"zone"}, shares(map[string]any{"zone": "a"})
	two := shares(map[string]any{"zone": "a", "rack": "b"})
	for name, c := range map[string]struct {
		backend string
		nfs     map[string]any
		args    []any
		says    string // empty if it is rendered
	}{
		"of the share":     {"nfs", map[string]any{"topologyKeys": zone, "config": zoned}, nil, ""},
		"of no share":      {"nfs", map[string]any{"topologyKeys": zone}, nil, "nfs.topologyKeys has zone"},
		"unknown to nodes": {"nfs", map[string]any{"config": zoned}, nil, "the topology key zone"},
		"one of two":       {"nfs", map[string]any{"topologyKeys": zone, "config": two}, nil, "the topology key rack"},
		"two of two":       {"nfs", map[string]any{"topologyKeys": []any{"rack", "zone"}, "config": two}, nil, ""},
		"as arguments":     {"nfs", map[string]any{"config": two}, []any{"--topology=rack=b,zone=a"}, ""},
		"another backend":  {"ebs", map[string]any{"topologyKeys": zone}, nil, ""},
	} {
		values := map[string]any{"backend": c.backend, "nfs": c.nfs, "extraArgs": append([]any{}, c.args...)}
		files, err := rendered(values, false)
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: rendered with %v, want %q in it", name, err, c.says)
		}
		if c.backend != "nfs" && strings.Contains(files["stowage/templates/node.yaml"], "--topology") {
			t.Errorf("%s: the driver of %s would refuse the places of shares", name, c.backend)
		}
	}
}

package tests

import (
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// machine returns a Node with taints.
func machine(taints ...any) map[string]any {
	return map[string]any{
		"metadata": map[string]any{"name": "x", "labels": map[string]any{"a": "b"}},
		"spec": map[string]any{"providerID": "aws:///z/i-1", "podCIDR": "10.0.0.0/24", "podCIDRs": []any{"10.0.0.0/24"},
			"taints": taints},
	}
}

func taint(key, value, effect string) map[string]any {
	t := map[string]any{"key": key, "effect": effect}
	if value != "" {
		t["value"] = value
	}
	return t
}

// edited returns a Node with one changed field.
func edited(part, field string, value any) map[string]any {
	n := machine()
	before, _ := n[part].(map[string]any) // machine creates only maps
	whole := maps.Clone(before)
	whole[field] = value
	n[part] = whole
	return n
}

// TestOnlyTheTaint checks how the policy restricts the right to patch nodes: to one taint, with the driver's name as
// its value.
func TestOnlyTheTaint(t *testing.T) {
	const key, driver = "node.kubernetes.io/out-of-service", "ebs.csi.stowage.dev"
	ebs := install{backend: "ebs"}
	ebsController := ebs.user()
	ours, theirs := taint(key, driver, "NoExecute"), taint(key, "nodeshutdown", "NoExecute")
	cordoned := taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
	for name, c := range map[string]struct {
		change  change
		allowed bool
	}{
		"put out of service": {change{ebsController, "nodes", "", machine(cordoned), machine(cordoned, ours)}, true},
		"put into service":   {change{ebsController, "nodes", "", machine(ours, cordoned), machine(cordoned)}, true},
		"nothing":            {change{ebsController, "nodes", "", machine(), machine()}, true},
		"another's value":    {change{ebsController, "nodes", "", machine(), machine(theirs)}, false},
		"no value": {change{ebsController, "nodes", "", machine(), machine(taint(key, "", "NoExecute"))},
			false},
		"another effect": {change{ebsController, "nodes", "", machine(),
			machine(taint(key, driver, "NoSchedule"))}, false},
		"another taint": {change{ebsController, "nodes", "", machine(),
			machine(taint("a", driver, "NoExecute"))}, false},
		"remove an operator's":    {change{ebsController, "nodes", "", machine(theirs), machine()}, false},
		"take over an operator's": {change{ebsController, "nodes", "", machine(theirs), machine(ours)}, false},
		"remove another taint":    {change{ebsController, "nodes", "", machine(cordoned), machine()}, false},
		"cordon": {change{ebsController, "nodes", "", machine(), edited("spec", "unschedulable", true)},
			false},
		"another machine": {change{ebsController, "nodes", "", machine(),
			edited("spec", "providerID", "aws:///z/i-2")}, false},
		"another network": {change{ebsController, "nodes", "", machine(),
			edited("spec", "podCIDR", "10.1.0.0/24")}, false},
		"a label": {change{ebsController, "nodes", "", machine(),
			edited("metadata", "labels", map[string]any{"a": "c"})}, false},
		"an annotation": {change{ebsController, "nodes", "", machine(),
			edited("metadata", "annotations", map[string]any{"a": "c"})}, false},
		"a finalizer": {change{ebsController, "nodes", "", machine(),
			edited("metadata", "finalizers", []any{"a"})}, false},
		"an owner": {change{ebsController, "nodes", "", machine(),
			edited("metadata", "ownerReferences", []any{"a"})}, false},
		"the status":                 {change{ebsController, "nodes", "status", machine(), machine()}, false},
		"installed elsewhere":        {change{ebs.renamed(), "nodes", "", machine(cordoned), machine()}, false},
		"somebody else's taint":      {change{"admin", "nodes", "", machine(), machine(theirs)}, true},
		"somebody else's other node": {change{"admin", "nodes", "", machine(), edited("spec", "unschedulable", true)}, true},
	} {
		for _, in := range installs() {
			if !in.failover {
				continue
			}
			found, said := policies(t, kustomized(t, in.folder), "nodes", c.change.sub), ""
			if len(found) != 1 {
				t.Fatalf("%d policies are in force for nodes, want 1", len(found))
			}
			for _, policy := range found {
				said += refusal(t, policy, c.change)
			}
			if (said == "") != c.allowed || said != "" && !strings.Contains(said, driver) {
				t.Errorf("%s: allowed is %t, want %t: %q", name, said == "", c.allowed, said)
			}
		}
	}
}

// TestOnlyEvictedPods checks that the policy restricts the right to delete pods to those whose deletion has begun.
func TestOnlyEvictedPods(t *testing.T) {
	ebs := install{backend: "ebs"}
	works := map[string]any{"metadata": map[string]any{"name": "x", "namespace": "default"},
		"spec": map[string]any{"nodeName": "n"}}
	evicted := map[string]any{"metadata": map[string]any{"name": "x", "namespace": "default",
		"deletionTimestamp": "2026-01-01T00:00:00Z"}, "spec": works["spec"]}
	for name, c := range map[string]struct {
		change  change
		allowed bool
	}{
		"evicted":               {change{ebs.user(), "pods", "", evicted, nil}, true},
		"works":                 {change{ebs.user(), "pods", "", works, nil}, false},
		"works elsewhere":       {change{ebs.renamed(), "pods", "", works, nil}, false},
		"somebody else's right": {change{"admin", "pods", "", works, nil}, true},
	} {
		for _, in := range installs() {
			if !in.failover {
				continue
			}
			found := policies(t, kustomized(t, in.folder), "pods", "")
			if len(found) != 1 {
				t.Fatalf("%d policies are in force for pods, want 1", len(found))
			}
			said := refusal(t, found[0], c.change)
			if (said == "") != c.allowed || said != "" && !strings.Contains(said, "ebs.csi.stowage.dev") {
				t.Errorf("%s: allowed is %t, want %t: %q", name, said == "", c.allowed, said)
			}
		}
	}
}

// TestHolds checks that the driver asks before it detaches exactly where a manager answers.
func TestHolds(t *testing.T) {
	for _, in := range installs() {
		for form, objects := range map[string][]object{
			"kustomize": kustomized(t, in.folder), "helm": charted(t, in.values, in.schemaless),
		} {
			var asks, answers []string
			for _, pod := range pods(t, objects) {
				for _, c := range containers(pod) {
					asks = append(asks, valuesOf(c, "--holds=")...)
					answers = append(answers, valuesOf(c, "--serve-holds=")...)
				}
			}
			if !slices.Equal(asks, answers) || (len(asks) == 1) != in.failover {
				t.Errorf("%s, %s: the driver asks at %q, and the manager answers at %q", in.name, form, asks, answers)
			}
		}
	}
}

// valuesOf returns the values of a container's flag.
func valuesOf(c corev1.Container, flag string) (values []string) {
	for _, arg := range c.Args {
		if value, ok := strings.CutPrefix(arg, flag); ok {
			values = append(values, value)
		}
	}
	return values
}

// TestFailoverNeedsMachines checks that an unsupported combination is not rendered.
func TestFailoverNeedsMachines(t *testing.T) {
	for _, in := range installs() {
		if !in.manager || in.failover || in.schemaless {
			continue
		}
		values := maps.Clone(in.values)
		values["manager"] = map[string]any{"enabled": true, "failover": map[string]any{"enabled": true}}
		_, err := rendered(values, false)
		if works := in.backend == "ebs"; (err == nil) != works {
			t.Errorf("%s: rendered with failover: %v, want it to work: %t", in.name, err, works)
		} else if err != nil && !strings.Contains(err.Error(), "knows no machines of nodes") {
			t.Errorf("%s: the refusal says %v", in.name, err)
		}
	}
}

// TestPartsNeedTheManager checks that an enabled part of the manager runs, or that rendering fails. Binding has no
// value of its own.
func TestPartsNeedTheManager(t *testing.T) {
	on := map[string]any{"enabled": true}
	for name, part := range map[string]any{"failover": on, "orphans": on, "startupTaint": on,
		"extraArgs": []any{"--bind-api-qps=300"}} {
		for _, enabled := range []bool{false, true} {
			_, err := rendered(map[string]any{"backend": "ebs", "manager": map[string]any{"enabled": enabled, name: part}},
				false)
			if enabled != (err == nil) {
				t.Errorf("manager.enabled is %t and %s given: rendered with %v", enabled, name, err)
			} else if err != nil && (!strings.Contains(err.Error(), "manager."+name) ||
				!strings.Contains(err.Error(), "manager.enabled=true")) {
				t.Errorf("%s: the refusal says %v", name, err)
			}
		}
	}
}

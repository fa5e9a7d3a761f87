package tests

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// TestOnlyTheStartupTaint checks that, without failover, the policy restricts the right to patch nodes to the removal
// of a taint.
func TestOnlyTheStartupTaint(t *testing.T) {
	const key = "ebs.csi.stowage.dev/agent-not-ready"
	ebs := install{backend: "ebs"}
	starting, again := taint(key, "", "NoSchedule"), taint(key, "true", "NoExecute")
	cordoned := taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
	theirs := taint("pd.csi.stowage.dev/agent-not-ready", "", "NoSchedule")
	ours := taint("node.kubernetes.io/out-of-service", "ebs.csi.stowage.dev", "NoExecute")
	alone := kustomized(t, "kubernetes/overlays/ebs-startup")
	together, err := composed(t, both()...)
	if err != nil {
		t.Fatal(err)
	}
	charts := charted(t, map[string]any{"backend": "ebs", "manager": map[string]any{"enabled": true,
		"failover": map[string]any{"enabled": true}, "startupTaint": map[string]any{"enabled": true}}}, false)
	for name, c := range map[string]struct {
		change                 change
		allowed, allowedBeside bool
	}{
		"removed":            {change{ebs.user(), "nodes", "", machine(cordoned, starting), machine(cordoned)}, true, true},
		"both removed":       {change{ebs.user(), "nodes", "", machine(again, starting), machine()}, true, true},
		"one removed":        {change{ebs.user(), "nodes", "", machine(again, starting), machine(again)}, true, true},
		"added":              {change{ebs.user(), "nodes", "", machine(), machine(starting)}, false, false},
		"another value":      {change{ebs.user(), "nodes", "", machine(starting), machine(again)}, false, false},
		"another taint":      {change{ebs.user(), "nodes", "", machine(starting, cordoned), machine()}, false, false},
		"put out of service": {change{ebs.user(), "nodes", "", machine(), machine(ours)}, false, true},
		"put into service":   {change{ebs.user(), "nodes", "", machine(ours), machine()}, false, true},
		"cordon": {change{ebs.user(), "nodes", "", machine(), edited("spec", "unschedulable", true)},
			false, false},
		"a label": {change{ebs.user(), "nodes", "", machine(), edited("metadata", "labels", map[string]any{"a": "c"})},
			false, false},
		"the status":          {change{ebs.user(), "nodes", "status", machine(), machine()}, false, false},
		"installed elsewhere": {change{ebs.renamed(), "nodes", "", machine(), machine(starting)}, false, false},
		"another driver's":    {change{ebs.user(), "nodes", "", machine(theirs), machine()}, false, false},
		"somebody else":       {change{"admin", "nodes", "", machine(), machine(starting)}, true, true},
	} {
		for _, in := range []struct {
			objects []object
			number  int
			allowed bool
		}{{alone, 1, c.allowed}, {decoded(t, together), 2, c.allowedBeside}, {charts, 2, c.allowedBeside}} {
			found, said := policies(t, in.objects, "nodes", c.change.sub), ""
			if len(found) != in.number {
				t.Fatalf("%d policies are in force for nodes, want %d", len(found), in.number)
			}
			for _, policy := range found {
				said += refusal(t, policy, c.change)
			}
			if (said == "") != in.allowed || said != "" && !strings.Contains(said, "ebs.csi.stowage.dev") {
				t.Errorf("%s, %d policies: allowed is %t, want %t: %q", name, in.number, said == "", in.allowed, said)
			}
		}
	}
}

func both() []string { return []string{"manager", "startup", "failover"} }

// TestStartupOfAStandalone checks that the manager beside a driver without a separate controller gets the flag too.
func TestStartupOfAStandalone(t *testing.T) {
	text, err := composedOver(t, "local-standalone-manager", "startup")
	if err != nil {
		t.Fatal(err)
	}
	for id, pod := range pods(t, decoded(t, text)) {
		ours := corev1.Toleration{Key: "local.csi.stowage.dev/agent-not-ready", Operator: corev1.TolerationOpExists}
		if c := container(t, pod, "manager"); !slices.Contains(c.Args, "--startup-taint") ||
			!slices.Contains(pod.Spec.Tolerations, ours) {
			t.Errorf("%s: the manager has the arguments %q, and the pod tolerates %v", id, c.Args, pod.Spec.Tolerations)
		}
	}
}

// composed renders the overlay of ebs with components in the given order.
func composed(t *testing.T, components ...string) ([]byte, error) {
	t.Helper()
	return composedOver(t, "ebs", components...)
}

func composedOver(t *testing.T, overlay string, components ...string) ([]byte, error) {
	t.Helper()
	folder := t.TempDir()
	kubernetes, err := filepath.Abs("../kubernetes")
	if err == nil {
		kubernetes, err = filepath.Rel(folder, kubernetes)
	}
	if err != nil {
		t.Fatal(err)
	}
	text := "resources: [" + kubernetes + "/overlays/" + overlay + "]\ncomponents:\n"
	for _, name := range components {
		text += "  - " + kubernetes + "/components/" + name + "\n"
	}
	if err := os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		return nil, err
	}
	return resources.AsYaml()
}

// TestOwnPodsTolerateTheStartupTaint checks that the driver can start on a tainted node, and the manager too when all
// nodes are new, whatever their other tolerations.
func TestOwnPodsTolerateTheStartupTaint(t *testing.T) {
	for _, backend := range []string{"ebs", "nfs", "local"} {
		for _, own := range [][]any{{}, {map[string]any{"key": "a", "operator": "Exists"}}} {
			tolerations := map[string]any{"tolerations": own}
			values := map[string]any{"backend": backend, "controller": tolerations, "node": tolerations,
				"local":   tolerations,
				"manager": map[string]any{"enabled": true, "startupTaint": map[string]any{"enabled": true}}}
			ours := corev1.Toleration{Key: backend + ".csi.stowage.dev/agent-not-ready", Operator: corev1.TolerationOpExists}
			found := pods(t, charted(t, values, false))
			if len(found) == 0 {
				t.Errorf("%s: there are no pods", backend)
			}
			for id, pod := range found {
				if have := pod.Spec.Tolerations; len(have) != len(own)+1 || !slices.Contains(have, ours) {
					t.Errorf("%s: %s tolerates %v, want %v beside %v", backend, id, have, ours, own)
				}
			}
		}
	}
}

// TestOrderOfComponents checks that failover extends the policy of startup for its taint, so that startup must come
// before it.
func TestOrderOfComponents(t *testing.T) {
	for _, names := range [][]string{both(), {"manager", "failover", "startup"}} {
		_, err := composed(t, names...)
		if works := names[1] == "startup"; works != (err == nil) {
			t.Errorf("in the order %v: %v, want it to work: %t", names, err, works)
		} else if err != nil && !strings.Contains(err.Error(), "startup-comes-before-failover") {
			t.Errorf("the refusal says %v", err)
		}
	}
}

// TestComponentsLeaveEachOtherAlone checks that each component adds the same objects with and without the others, in
// each valid order.
func TestComponentsLeaveEachOtherAlone(t *testing.T) {
	together := map[string]object{}
	all, err := composed(t, append(both(), "orphans")...)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range decoded(t, all) {
		together[o.id()] = o
	}
	for _, names := range [][]string{both(), {"manager", "orphans"}, {"manager", "orphans", "startup", "failover"}} {
		text, err := composed(t, names...)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range decoded(t, text) {
			if o.GetKind() == "Deployment" { // Each component adds its flags.
				continue
			}
			if !reflect.DeepEqual(o, together[o.id()]) {
				t.Errorf("with the components %v there is %s, and with all of them it is another, or none", names, o.id())
			}
		}
	}
}

// TestSchedulingIsPrevented checks the field that keeps pods away from nodes without the driver: it is absent unless it
// is requested, and refused where Kubernetes would drop it.
func TestSchedulingIsPrevented(t *testing.T) {
	asked := map[string]any{"preventPodSchedulingIfMissing": true}
	for _, row := range []struct {
		kubernetes string
		values     map[string]any
		want       bool
		says       string
	}{
		{"v1.36.3", map[string]any{}, false, ""},
		{"v1.36.3", asked, true, ""},
		{"v1.35.0-eks-1234567", asked, true, ""},
		{"v1.34.2", map[string]any{}, false, ""},
		{"v1.34.2", asked, false, "csiDriver.preventPodSchedulingIfMissing is true, and Kubernetes v1.34.2"},
	} {
		files, err := renderedOn(row.kubernetes, map[string]any{"backend": "ebs", "csiDriver": row.values}, false)
		if row.says != "" {
			if err == nil || !strings.Contains(err.Error(), row.says) {
				t.Errorf("on Kubernetes %s: %v, want %q", row.kubernetes, err, row.says)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		driver := typed(t, decoded(t, []byte(files["stowage/templates/csidriver.yaml"]))[0]).(*storagev1.CSIDriver)
		if have := driver.Spec.PreventPodSchedulingIfMissing; (have != nil) != row.want || have != nil && !*have {
			t.Errorf("on Kubernetes %s with %v: %v, want %t", row.kubernetes, row.values, have, row.want)
		}
	}
}

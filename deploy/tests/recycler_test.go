package tests

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
)

const recyclerFolder = "kubernetes/recycler"

// chartedRecycler returns the objects that the chart installs only with the recycler.
func chartedRecycler(t *testing.T) []object {
	t.Helper()
	there := byID(t, charted(t, map[string]any{}, false))
	all := charted(t, map[string]any{"recycler": map[string]any{"enabled": true}}, false)
	return slices.DeleteFunc(all, func(o object) bool { return there[o.id()].Unstructured != nil })
}

// TestRecyclerSameObjects checks that kustomize and Helm install the same recycler, and that the chart's default has
// none.
func TestRecyclerSameObjects(t *testing.T) {
	compare(t, kustomized(t, recyclerFolder), chartedRecycler(t))
	for _, o := range charted(t, map[string]any{}, false) {
		if strings.Contains(o.id(), "recycler") {
			t.Errorf("%s is there by default", o.id())
		}
	}
}

// recyclerRights returns all rights of the recycler.
func recyclerRights() []right {
	const core = ""
	return []right{
		{"cluster", core, "persistentvolumes", "get,list,watch,update",
			"takes released volumes as orders, and writes the claim and how far it is"},
		{"cluster", core, "persistentvolumes/status", "update", "writes that a volume could not be scrubbed"},
		{"cluster", core, "persistentvolumeclaims", "get", "asks whether the claim that had the volume is gone"},
		{"cluster", core, "pods", "list", "asks which pods still use that claim"},
		{"cluster", core, "nodes", "list", "asks which kubelets report the volume in use, and which do not answer"},
		{"cluster", "storage.k8s.io", "volumeattachments", "list", "asks where the volume is attached"},
		{"cluster", "stowage.dev", "localvolumes", "list", "asks whether the node of a local volume uses the volume"},
		{"cluster", "storage.k8s.io", "csidrivers", "get", "asks whether the driver has an attach step"},
		{"cluster", "events.k8s.io", "events", "create,patch", "tells a volume what becomes of it"},
		{"own", core, "persistentvolumeclaims", "get,list,create,delete",
			"makes and removes the claims by which volumes are scrubbed"},
		{"own", core, "pods", "get,list,create,update,delete",
			"makes and removes the pods that scrub, and lets go of those that have ended"},
		{"own", core, "serviceaccounts", "create", "makes the list of the classes in which there may be recycled volumes"},
		{"own", core, "serviceaccounts/recycled-classes only", "get,update",
			"writes into that list the class of a volume before it gives the volume back"},
		{"own", "coordination.k8s.io", "leases", "get,create,update", "of several recyclers of the same drivers, one acts"},
		{"own", core, "events", "create,patch", "tells the lease who leads"},
	}
}

func TestRecyclerRights(t *testing.T) {
	var want []string
	for _, r := range recyclerRights() {
		scope := map[string]string{"cluster": "ClusterRole", "own": "Role"}[r.role]
		want = append(want, fmt.Sprintf("%s: %s/%s %s", scope, r.group, r.resource, r.verbs))
	}
	var got []string
	for _, o := range kustomized(t, recyclerFolder) {
		for _, rule := range rulesOf(t, o) {
			for _, resource := range rule.Resources {
				if len(rule.ResourceNames) > 0 {
					resource += "/" + strings.Join(rule.ResourceNames, ",") + " only"
				}
				got = append(got, fmt.Sprintf("%s: %s/%s %s", o.GetKind(), rule.APIGroups[0], resource,
					strings.Join(rule.Verbs, ",")))
			}
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		t.Errorf("the rights are\n%s\nand reasons are there for\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestRecyclerPod checks that the recycler has minimal privileges, that its flags exist, and that its namespace allows
// no privileged pod.
func TestRecyclerPod(t *testing.T) {
	objects := kustomized(t, recyclerFolder)
	all := pods(t, objects)
	if len(all) != 1 {
		t.Fatalf("there are %d pods", len(all))
	}
	for id, pod := range all {
		c := container(t, pod, "recycler")
		checkTight(t, id, pod.Spec.SecurityContext, c)
		checkEveryone(t, id, c)
		checkFlags(t, id, managers(t, "recycler.go"), c.Args[1:])
	}
	namespace := typed(t, find(t, objects, "Namespace/stowage-recycler")).(*corev1.Namespace)
	if level := namespace.Labels["pod-security.kubernetes.io/enforce"]; level != "baseline" {
		t.Errorf("the recycler's namespace allows pods of the level %q", level)
	}
}

// TestRecyclerInAnotherNamespace checks that the policy reads the list of classes from the recycler's namespace if an
// overlay changes the namespace, even an overlay of an overlay.
func TestRecyclerInAnotherNamespace(t *testing.T) {
	base, err := filepath.Abs("../" + recyclerFolder)
	for _, namespace := range []string{"storage", "other"} {
		dir, wrong := filepath.EvalSymlinks(t.TempDir())
		below, worse := filepath.Rel(dir, base)
		text := fmt.Sprintf("namespace: %s\nresources: [%s]\n", namespace, below)
		unwritten := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600)
		if err := errors.Join(err, wrong, worse, unwritten); err != nil {
			t.Fatal(err)
		}
		base = dir
		all := kustomizedAt(t, dir)
		found := typed(t, find(t, all, "ValidatingAdmissionPolicyBinding/stowage-recycler-data-sources"))
		binding, is := found.(*admissionregistrationv1.ValidatingAdmissionPolicyBinding)
		if !is || binding.Spec.ParamRef.Namespace != namespace {
			t.Errorf("in the namespace %s the policy is bound to %+v", namespace, found)
		}
		find(t, all, "Deployment/"+namespace+"/recycler")
	}
}

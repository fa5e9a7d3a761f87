package tests

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"sigs.k8s.io/yaml"
)

const (
	disksFolder   = "kubernetes/found-disks"
	disksExamples = "kubernetes/examples/found-disks"
	disksWorker   = "system:serviceaccount:stowage-system:stowage-disks-worker"
)

// disksRights returns all rights of the processes for found disks. The process that opens disks has none.
func disksRights() []right {
	const core = ""
	return []right{
		{"ClusterRole master", core, "persistentvolumes", "get,list,watch,create,update,delete",
			"offers volumes, removes them once they are wiped, and holds them by a finalizer until then"},
		{"ClusterRole master", core, "nodes", "get,list,watch",
			"sees which nodes there are, their labels, and past its cache that one is gone"},
		{"ClusterRole master", "storage.k8s.io", "storageclasses", "list,watch", "reads which classes take which volumes"},
		{"ClusterRole master", "events.k8s.io", "events", "create,patch", "tells volumes, claims and classes what is wrong"},
		{"Role master", "stowage.dev", "nodestorages", "get,list,watch,create,update,delete",
			"makes the object of each node, writes what is offered and to be wiped, and removes those of nodes that are gone"},
		{"Role master", "coordination.k8s.io", "leases", "get,create,update", "of several masters, one acts"},
		{"Role master", core, "events", "create,patch", "tells the lease who leads"},
		{"Role worker", "stowage.dev", "nodestorages", "list,watch", "takes its node's object as orders"},
		{"Role worker", "stowage.dev", "nodestorages/status", "update",
			"writes what was found and done, to which a policy holds it"},
	}
}

func TestDisksRights(t *testing.T) {
	var want []string
	for _, r := range disksRights() {
		want = append(want, fmt.Sprintf("%s: %s/%s %s", r.role, r.group, r.resource, r.verbs))
	}
	var got []string
	objects := kustomized(t, disksFolder)
	for _, o := range objects {
		for _, rule := range rulesOf(t, o) {
			for _, resource := range rule.Resources {
				role := o.GetKind() + " " + strings.TrimPrefix(o.GetName(), "stowage-disks-")
				got = append(got, fmt.Sprintf("%s: %s/%s %s", role, rule.APIGroups[0], resource, strings.Join(rule.Verbs, ",")))
			}
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		t.Errorf("the rights are\n%s\nand reasons are there for\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	checkDisksBindings(t, objects)
}

// checkDisksBindings checks that each role is bound to the account of its name, and none to the account of the process
// that opens disks.
func checkDisksBindings(t *testing.T, objects []object) {
	t.Helper()
	bindings := 0
	for _, o := range objects {
		if !strings.HasSuffix(o.GetKind(), "RoleBinding") {
			continue
		}
		bindings++
		subjects, role := subjectsOf(t, o)
		if role != o.GetName() || len(subjects) != 1 || subjects[0] != "ServiceAccount/stowage-system/"+role ||
			role == "stowage-disks" {
			t.Errorf("%s gives %s to %q", o.id(), role, subjects)
		}
		find(t, objects, "ServiceAccount/stowage-system/"+role)
	}
	if bindings != 3 {
		t.Errorf("there are %d bindings, want 3", bindings)
	}
}

// TestDisksPods checks that master and worker have minimal privileges, that the process that opens disks has no token,
// no account with rights and no network, and that all flags exist.
func TestDisksPods(t *testing.T) {
	objects := kustomized(t, disksFolder)
	all := pods(t, objects)
	for id, source := range map[string]string{
		"Deployment/stowage-system/stowage-disks-master": managers(t, "master.go"),
		"DaemonSet/stowage-system/stowage-disks-worker":  managers(t, "worker.go"),
		"DaemonSet/stowage-system/stowage-disks":         source(t, "driver/disks.go"),
	} {
		pod, there := all[id]
		if !there || len(pod.Spec.Containers) != 1 {
			t.Errorf("%s has %d containers", id, len(pod.Spec.Containers))
			continue
		}
		c := pod.Spec.Containers[0]
		checkEveryone(t, id, c)
		checkFlags(t, id, source, c.Args[1:])
		if opens := c.Name == "disks"; !opens {
			checkTight(t, id, pod.Spec.SecurityContext, c)
			checkDisksToken(t, id, pod)
		} else {
			checkDisksOpener(t, id, pod, c)
		}
	}
	if len(all) != 3 {
		t.Errorf("there are %d kinds of pods, want 3", len(all))
	}
}

// checkDisksToken checks that a pod has a token that is bound to it, that it does not see the host's processes, and
// that it sees at most a socket of the host's files.
func checkDisksToken(t *testing.T, id string, pod corev1.PodTemplateSpec) {
	t.Helper()
	tokens := 0
	for _, v := range pod.Spec.Volumes {
		switch {
		case v.Projected != nil:
			tokens++
		case v.HostPath == nil || v.HostPath.Path != "/run/stowage/disks" || !strings.HasPrefix(id, "DaemonSet/"):
			t.Errorf("%s has the volume %s", id, v.Name)
		}
	}
	auto := pod.Spec.AutomountServiceAccountToken
	if tokens != 1 || auto == nil || *auto || pod.Spec.HostPID || pod.Spec.HostNetwork || pod.Spec.HostIPC {
		t.Errorf("%s has %d tokens (automounted: %v), the host's processes: %t, network: %t", id, tokens, auto,
			pod.Spec.HostPID, pod.Spec.HostNetwork)
	}
}

// checkDisksOpener checks the container that is root on every node.
func checkDisksOpener(t *testing.T, id string, pod corev1.PodTemplateSpec, c corev1.Container) {
	t.Helper()
	if auto := pod.Spec.AutomountServiceAccountToken; auto == nil || *auto ||
		pod.Spec.ServiceAccountName != "stowage-disks" || pod.Spec.HostNetwork {
		t.Errorf("%s runs as %s, with a token: %v, in the host's network: %t", id, pod.Spec.ServiceAccountName, auto,
			pod.Spec.HostNetwork)
	}
	paths := map[string]string{}
	for _, v := range pod.Spec.Volumes {
		switch {
		case v.HostPath != nil:
			paths[v.Name] = v.HostPath.Path
		case v.ConfigMap == nil:
			t.Errorf("%s is given %s", id, v.Name)
		}
	}
	want := []string{"/dev", "/mnt/disks", "/run/stowage/disks", "/var/lib/kubelet", "/var/lib/stowage/disks"}
	if got := slices.Sorted(maps.Values(paths)); !slices.Equal(got, want) {
		t.Errorf("%s sees %q of the host, want %q", id, got, want)
	}
	for _, m := range c.VolumeMounts {
		if host := paths[m.Name]; host != "" && host != m.MountPath {
			t.Errorf("%s sees %s at %s: paths would mean another thing than on the host", id, host, m.MountPath)
		}
		late := m.Name == "mounts" || m.Name == "kubelet"
		if seen := m.MountPropagation != nil && *m.MountPropagation == corev1.MountPropagationHostToContainer; seen != late {
			t.Errorf("%s sees what is mounted later below %s: %t, want %t", id, m.MountPath, seen, late)
		}
	}
}

// TestDisksPlaces checks that the master allows exactly the places that the process that opens disks uses.
func TestDisksPlaces(t *testing.T) {
	objects := kustomized(t, disksFolder)
	all := pods(t, objects)
	master := container(t, all["Deployment/stowage-system/stowage-disks-master"], "master").Args
	disks := container(t, all["DaemonSet/stowage-system/stowage-disks"], "disks").Args
	for _, pair := range [][2]string{
		{"--device-directory=/var/lib/stowage/disks/links", "--data-dir=/var/lib/stowage/disks"},
		{"--device-directory=/var/lib/stowage/disks/links", "--link-dir=/run/stowage/disks/links"},
		{"--mount-directories=/mnt/disks", "--config=/etc/stowage/disks.yaml"},
	} {
		if !slices.Contains(master, pair[0]) || !slices.Contains(disks, pair[1]) {
			t.Errorf("the master has %q and who opens disks %q: want %q", master, disks, pair)
		}
	}
	policy := typed(t, find(t, objects, "ValidatingAdmissionPolicy/stowage-disks-volumes"))
	held := policy.(*admissionregistrationv1.ValidatingAdmissionPolicy).Spec.Variables[0].Expression
	if want := `["/var/lib/stowage/disks/links","/mnt/disks"]`; held != want {
		t.Errorf("the policy lets the master offer what is in %s: want %s", held, want)
	}
	worker := container(t, all["DaemonSet/stowage-system/stowage-disks-worker"], "worker").Args
	if !slices.Contains(worker, "--disks-socket=/run/stowage/disks/disks.sock") ||
		!slices.Contains(disks, "--endpoint=unix:///run/stowage/disks/disks.sock") {
		t.Errorf("the worker asks at %q, and is answered at %q", worker, disks)
	}
}

// TestDisksConfigFindsNoDisk checks that an installation alone never offers a disk: an administrator selects them.
func TestDisksConfigFindsNoDisk(t *testing.T) {
	for _, o := range kustomized(t, disksFolder) {
		config, is := typed(t, o).(*corev1.ConfigMap)
		if !is {
			continue
		}
		var rules map[string][]map[string]any
		if err := yaml.UnmarshalStrict([]byte(config.Data["disks.yaml"]), &rules); err != nil {
			t.Fatal(err)
		}
		if len(rules) != 1 || len(rules["mountPoints"]) != 1 {
			t.Errorf("the configuration is %v: want one rule, for mount points", rules)
		}
		return
	}
	t.Error("there is no configuration")
}

// TestDisksClasses checks that the master serves the example classes.
func TestDisksClasses(t *testing.T) {
	modes := map[string]bool{}
	for _, o := range kustomized(t, disksExamples) {
		class, is := typed(t, o).(*storagev1.StorageClass)
		if !is || class.Labels["stowage.dev/local-volumes"] != "true" ||
			class.Provisioner != "kubernetes.io/no-provisioner" ||
			*class.VolumeBindingMode != storagev1.VolumeBindingWaitForFirstConsumer {
			t.Errorf("%s is no class of found disks", o.id())
			continue
		}
		modes[class.Parameters["volumeMode"]] = true
	}
	if !maps.Equal(modes, map[string]bool{"Block": true, "Filesystem": true}) {
		t.Errorf("there are classes of %v", modes)
	}
}

// TestDisksPolicy checks how the policy restricts the workers' right to write, as the API server evaluates it.
// tests/e2e tests it with tokens.
func TestDisksPolicy(t *testing.T) {
	objects := kustomized(t, disksFolder)
	found := policies(t, objects, "nodestorages", "*")
	if len(found) != 1 || len(policies(t, objects, "nodestorages", "")) != 1 ||
		*found[0].Spec.FailurePolicy != admissionregistrationv1.Fail {
		t.Fatalf("%d policies are in force, want one that fails", len(found))
	}
	token := func(nodes ...string) map[string][]string {
		return map[string][]string{"authentication.kubernetes.io/node-name": nodes}
	}
	for name, c := range map[string]struct {
		who       string
		extra     map[string][]string
		operation admission.Operation
		sub       string
		says      string // empty if it is allowed
	}{
		"its own status": {disksWorker, token("a"), admission.Update, "status", ""},
		"another node's": {disksWorker, token("b"), admission.Update, "status",
			"the token is of node b, the object is of node a"},
		"a name that begins alike": {disksWorker, token("a1"), admission.Update, "status", "of node a1"},
		"a token of no node":       {disksWorker, nil, admission.Update, "status", "the token is of no node"},
		"an empty name":            {disksWorker, token(""), admission.Update, "status", "its own node only"},
		"two nodes":                {disksWorker, token("a", "b"), admission.Update, "status", "its own node only"},
		"its own spec":             {disksWorker, token("a"), admission.Update, "", "nothing else"},
		"another subresource":      {disksWorker, token("a"), admission.Update, "scale", "nothing else"},
		"create its own":           {disksWorker, token("a"), admission.Create, "", "nothing else"},
		"delete its own":           {disksWorker, token("a"), admission.Delete, "", "nothing else"},
		"the master": {"system:serviceaccount:stowage-system:stowage-disks-master", nil, admission.Update, "",
			""},
		"a worker of other's space": {"system:serviceaccount:default:stowage-disks-worker", nil, admission.Update, "status",
			"the token is of no node"},
		"an account named after it": {"system:serviceaccount:stowage-disks-worker:stowage-disks-master", nil,
			admission.Update, "", ""},
		"no account": {"system:serviceaccounts:stowage-disks-worker", nil, admission.Update, "", ""},
	} {
		who := &user.DefaultInfo{Name: c.who, Extra: c.extra}
		said := refusalOfStorage(t, found[0], who, c.operation, c.sub)
		if (said == "") != (c.says == "") || !strings.Contains(said, c.says) {
			t.Errorf("%s: the policy says %q, want %q in it", name, said, c.says)
		}
	}
}

// TestDisksPolicyPools checks that a worker of found disks cannot write the pools of its node, which the worker of
// local volumes reports.
func TestDisksPolicyPools(t *testing.T) {
	found := policies(t, kustomized(t, disksFolder), "nodestorages", "*")
	if len(found) != 1 {
		t.Fatalf("%d policies are in force, want one", len(found))
	}
	who := &user.DefaultInfo{Name: disksWorker,
		Extra: map[string][]string{"authentication.kubernetes.io/node-name": {"a"}}}
	status := func(room ...string) map[string]any {
		fields := map[string]any{"found": int64(len(room))}
		for _, bytes := range room {
			fields["pools"] = []any{map[string]any{"name": "image", "type": "image", "available": bytes}}
		}
		return map[string]any{"status": fields}
	}
	none := map[string]any{"status": map[string]any{"pools": []any{}}}
	const says = "leaves the pools"
	for name, c := range map[string]struct {
		from, to map[string]any
		says     string // empty if it is allowed
	}{
		"its first report":         {map[string]any{}, status(), ""},
		"a report without pools":   {status(), status(), ""},
		"a report beside pools":    {status("1Gi"), status("1Gi"), ""},
		"an empty list of pools":   {none, status(), ""},
		"more room":                {status("1Gi"), status("9Gi"), says},
		"a pool of its own":        {status(), status("9Gi"), says},
		"a pool in its first":      {map[string]any{}, status("9Gi"), says},
		"no pools":                 {status("1Gi"), status(), says},
		"no status, beside a pool": {status("1Gi"), map[string]any{}, says},
	} {
		said := refusalOfOwn(t, found[0], who, admission.Update, "status", "NodeStorage", c.from, c.to)
		if (said == "") != (c.says == "") || !strings.Contains(said, c.says) {
			t.Errorf("%s: the policy says %q, want %q in it", name, said, c.says)
		}
	}
}

// TestDisksPolicyFollows checks that the policy also restricts the workers of an overlay that changes the
// installation's namespace or names.
func TestDisksPolicyFollows(t *testing.T) {
	for _, change := range []string{"namespace: storage", "namespace: storage\nnamePrefix: x-", "nameSuffix: -new"} {
		dir := t.TempDir()
		base, err := filepath.Rel(dir, absolute(t, "../"+disksFolder))
		if err != nil {
			t.Fatal(err)
		}
		text := []byte(change + "\nresources: [" + base + "]\n")
		if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), text, 0o600); err != nil {
			t.Fatal(err)
		}
		objects := kustomizedAt(t, dir)
		found := policies(t, objects, "nodestorages", "*")
		if len(found) != 1 {
			t.Fatalf("%q: %d policies are in force, want one", change, len(found))
		}
		token := map[string][]string{"authentication.kubernetes.io/node-name": {"b"}}
		worker := &user.DefaultInfo{Name: accountOf(t, objects, "worker"), Extra: token}
		if refusalOfStorage(t, found[0], worker, admission.Update, "status") == "" {
			t.Errorf("%q: a worker may write the status of another node", change)
		}
		master := &user.DefaultInfo{Name: accountOf(t, objects, "master")}
		if said := refusalOfStorage(t, found[0], master, admission.Update, ""); said != "" {
			t.Errorf("%q: the master is held to %q", change, said)
		}
	}
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// accountOf returns the user name of a component's pods in the API server.
func accountOf(t *testing.T, objects []object, component string) string {
	t.Helper()
	for id, pod := range pods(t, objects) {
		if pod.Labels["app.kubernetes.io/component"] == component {
			return "system:serviceaccount:" + strings.Split(id, "/")[1] + ":" + pod.Spec.ServiceAccountName
		}
	}
	t.Fatalf("there is no %s", component)
	return ""
}

// refusalOfStorage returns the policy's refusal of a change of the NodeStorage a.
func refusalOfStorage(t *testing.T, policy *admissionregistrationv1.ValidatingAdmissionPolicy, who user.Info,
	operation admission.Operation, sub string) string {
	t.Helper()
	return refusalOfOwn(t, policy, who, operation, sub, "NodeStorage", map[string]any{}, map[string]any{})
}

// refusalOfOwn returns the policy's refusal of a change of the object a of one of Stowage's own kinds.
func refusalOfOwn(t *testing.T, policy *admissionregistrationv1.ValidatingAdmissionPolicy, who user.Info,
	operation admission.Operation, sub, kind string, from, to map[string]any) string {
	t.Helper()
	resource := schema.GroupVersionResource{Group: "stowage.dev", Version: "v1alpha1",
		Resource: strings.ToLower(kind) + "s"}
	gvk := resource.GroupVersion().WithKind(kind)
	object := func(fields map[string]any) runtime.Object {
		all := map[string]any{"apiVersion": "stowage.dev/v1alpha1", "kind": kind, "metadata": map[string]any{"name": "a"}}
		maps.Copy(all, fields)
		return content(all)
	}
	before, after := object(from), object(to)
	switch operation {
	case admission.Create:
		before = nil
	case admission.Delete:
		after = nil
	default:
	}
	attributes := admission.NewAttributesRecord(after, before, gvk, "stowage-system", "a", resource, sub, operation, nil,
		false, who)
	versioned := &admission.VersionedAttributes{Attributes: attributes, VersionedKind: gvk}
	versioned.VersionedObject.Set(after)
	versioned.VersionedOldObject.Set(before)
	var said []string
	for _, d := range validator(t, policy).Validate(context.Background(), resource, versioned, nil, nil,
		celconfig.RuntimeCELCostBudget, nil).Decisions {
		if d.Evaluation == validating.EvalError {
			t.Fatal(d.Message)
		}
		if d.Action == validating.ActionDeny {
			said = append(said, d.Message)
		}
	}
	return strings.Join(said, "; ")
}

// subjectsOf returns the subjects and the role of a binding.
func subjectsOf(t *testing.T, binding object) (subjects []string, role string) {
	t.Helper()
	var list []rbacv1.Subject
	switch b := typed(t, binding).(type) {
	case *rbacv1.ClusterRoleBinding:
		list, role = b.Subjects, b.RoleRef.Name
	case *rbacv1.RoleBinding:
		list, role = b.Subjects, b.RoleRef.Name
	}
	for _, s := range list {
		subjects = append(subjects, s.Kind+"/"+s.Namespace+"/"+s.Name)
	}
	return subjects, role
}

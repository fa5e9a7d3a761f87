package tests

import (
	"maps"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
)

const (
	provisioner = "volume.kubernetes.io/storage-provisioner"
	node        = "volume.kubernetes.io/selected-node"
	grown       = "volume.kubernetes.io/node-expansion-not-required"
	protection  = "provisioner.storage.kubernetes.io/cloning-protection"
)

// account returns the account of the sidecars, and of the manager or master beside them.
func (in install) account() string {
	if in.cluster {
		return "stowage-disks-master"
	}
	return "stowage-" + in.backend + "-controller"
}

// user returns the account's user name in the API server.
func (in install) user() string { return "system:serviceaccount:stowage-system:" + in.account() }

// renamed returns the user name after an overlay has changed the namespace and the name.
func (in install) renamed() string { return "system:serviceaccount:storage:x-" + in.account() }

// allowance is a change by the account of a backend's sidecars, and whether it is allowed without the manager of sets,
// and with it.
type allowance struct {
	change
	alone, managed bool
}

func volume(source map[string]any) map[string]any {
	return map[string]any{"metadata": map[string]any{"name": "x"}, "spec": source}
}

// claim returns a claim of a driver with changed annotations, fields of the spec, and finalizers.
func claim(driver string, annotations map[string]any, spec map[string]any, finalizers ...any) map[string]any {
	all := map[string]any{}
	if driver != "" {
		all[provisioner] = driver
	}
	maps.Copy(all, annotations)
	whole := map[string]any{"storageClassName": "a",
		"resources": map[string]any{"requests": map[string]any{"storage": "1Gi"}}}
	maps.Copy(whole, spec)
	return map[string]any{"metadata": map[string]any{"name": "x", "annotations": all, "finalizers": finalizers},
		"spec": whole}
}

func allowances(in install) map[string]allowance {
	const pv, pvc, va, content = "persistentvolumes", "persistentvolumeclaims", "volumeattachments",
		"volumesnapshotcontents"
	driver := in.backend + ".csi.stowage.dev"
	of := func(driver string) map[string]any {
		return volume(map[string]any{"csi": map[string]any{"driver": driver}})
	}
	host := volume(map[string]any{"hostPath": map[string]any{"path": "/"}})
	ours, other := of(driver), of("other.example")
	attached := func(driver string) map[string]any { return volume(map[string]any{"attacher": driver}) }
	snapshot := func(driver string) map[string]any { return volume(map[string]any{"driver": driver}) }
	plain, foreign := claim(driver, nil, nil), claim("other.example", nil, nil)
	bound := map[string]any{"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"}
	named := map[string]any{"volumeName": "pv-1"}
	write := func(resource, sub string, before, after map[string]any) change {
		return change{in.user(), resource, sub, before, after}
	}
	return map[string]allowance{
		"make a volume":            {write(pv, "", nil, ours), true, true},
		"change a volume":          {write(pv, "", ours, ours), true, true},
		"remove a volume":          {write(pv, "", ours, nil), true, true},
		"a volume's phase":         {write(pv, "status", ours, ours), true, true},
		"make a host's volume":     {write(pv, "", nil, host), false, false},
		"make another's volume":    {write(pv, "", nil, other), false, false},
		"change another's volume":  {write(pv, "", other, other), false, false},
		"remove another's volume":  {write(pv, "", other, nil), false, false},
		"remove a host's volume":   {write(pv, "", host, nil), false, false},
		"another's volume's phase": {write(pv, "status", other, other), false, false},
		"write an attachment":      {write(va, "status", attached(driver), attached(driver)), true, true},
		"write another's": {write(va, "status", attached("other.example"), attached("other.example")), false,
			false},
		"attach for another":      {write(va, "", nil, attached("other.example")), false, false},
		"take over an attachment": {write(va, "", attached("other.example"), attached(driver)), false, false},
		"detach for another":      {write(va, "", attached("other.example"), nil), false, false},
		"write a snapshot":        {write(content, "status", snapshot(driver), snapshot(driver)), true, true},
		"write another's snapshot": {write(content, "status", snapshot("other.example"), snapshot("other.example")), false,
			false},
		"take over a snapshot": {write(content, "", snapshot("other.example"), snapshot(driver)), false, false},
		"write another's group": {write("volumegroupsnapshotcontents", "", snapshot("other.example"), snapshot(driver)),
			false, false},
		"protect a clone's source": {write(pvc, "", plain, claim(driver, nil, nil, protection)), true, true},
		"protect another's clone's source": {write(pvc, "", foreign, claim("other.example", nil, nil, protection)), true,
			true},
		"protect it no more": {write(pvc, "", claim("", nil, nil, "a", protection), claim("", nil, nil, "a")), true,
			true},
		"give back to scheduler": {write(pvc, "", claim(driver, map[string]any{node: "a"}, nil), plain), true, true},
		"choose another node": {write(pvc, "", claim(driver, map[string]any{node: "a"}, nil),
			claim(driver, map[string]any{node: "b"}, nil)), false, false},
		"take over a claim": {write(pvc, "", foreign, plain), false, false},
		"remove a finalizer": {write(pvc, "", claim(driver, nil, nil, "kubernetes.io/pvc-protection"), plain), false,
			false},
		"add an annotation": {write(pvc, "", plain, claim(driver, map[string]any{"a": "b"}, nil)), false, false},
		"ask for more": {write(pvc, "", plain,
			claim(driver, nil, map[string]any{"resources": map[string]any{"requests": map[string]any{"storage": "9Gi"}}})),
			false, false},
		"another class": {write(pvc, "", plain,
			claim(driver, nil, map[string]any{"volumeAttributesClassName": "b"})), false, false},
		"bind a claim": {write(pvc, "", plain, claim(driver, bound, named)), false, true},
		"bind it elsewhere": {write(pvc, "", claim(driver, bound, named),
			claim(driver, bound, map[string]any{"volumeName": "pv-2"})), false, false},
		"write a claim's size":    {write(pvc, "status", plain, plain), true, true},
		"that of a claim by hand": {write(pvc, "status", claim("", nil, nil), claim("", nil, nil)), true, true},
		"that of another's":       {write(pvc, "status", foreign, foreign), false, false},
		"no node needs to grow it": {write(pvc, "status", plain, claim(driver, map[string]any{grown: "true"}, nil)), true,
			true},
		"the next growth begins": {write(pvc, "status", claim(driver, map[string]any{grown: "true"}, nil), plain), true,
			true},
		"with a new annotation": {write(pvc, "status", plain, claim(driver, map[string]any{"a": "b"}, nil)), false,
			false},
		"a host's, from elsewhere":  {change{in.renamed(), pv, "", nil, host}, false, false},
		"a claim, from elsewhere":   {change{in.renamed(), pvc, "", foreign, plain}, false, false},
		"somebody else's host path": {change{"admin", pv, "", nil, host}, true, true},
		"somebody else's claim":     {change{"admin", pvc, "", foreign, plain}, true, true},
	}
}

// TestAccountsWrite checks how the policies restrict the rights of a backend's sidecars, manager and master: RBAC
// cannot express "of this driver". A master has no right to VolumeAttachments, so that no policy covers them.
func TestAccountsWrite(t *testing.T) {
	for _, in := range installs() {
		t.Run(in.name, func(t *testing.T) {
			all := allowances(in)
			if in.cluster {
				maps.DeleteFunc(all, func(_ string, a allowance) bool { return a.resource == "volumeattachments" })
				maps.Copy(all, offers(in.user(), true))
			}
			for way, said := range map[string]func(change) string{
				"kustomize": verdicts(t, kustomized(t, in.folder)), "helm": verdicts(t, charted(t, in.values, in.schemaless)),
			} {
				for name, a := range all {
					want := a.alone && !in.manager || a.managed && in.manager
					refusal := said(a.change)
					if (refusal == "") != want || refusal != "" && !strings.Contains(refusal, in.backend+".csi.stowage.dev") {
						t.Errorf("%s, %s: allowed is %t, want %t: %q", name, way, refusal == "", want, refusal)
					}
				}
			}
		})
	}
}

// TestDisksMasterWrites checks that only the master of found disks writes their volumes, and that it writes no others.
func TestDisksMasterWrites(t *testing.T) {
	said := verdicts(t, kustomized(t, disksFolder))
	for name, a := range offers("system:serviceaccount:stowage-system:stowage-disks-master", false) {
		if refusal := said(a.change); (refusal == "") != a.alone {
			t.Errorf("%s: allowed is %t, want %t: %q", name, refusal == "", a.alone, refusal)
		}
	}
}

// offers returns changes of volumes by a master, which may also serve a driver.
func offers(user string, serves bool) map[string]allowance {
	found := func(path string, annotations map[string]any) map[string]any {
		return map[string]any{
			"metadata": map[string]any{"name": "x", "annotations": annotations},
			"spec":     map[string]any{"local": map[string]any{"path": path}},
		}
	}
	mark := map[string]any{"pv.kubernetes.io/provisioned-by": "stowage.dev/local-volumes"}
	other := map[string]any{"pv.kubernetes.io/provisioned-by": "other.example"}
	mounted, device := found("/mnt/disks/a", mark), found("/var/lib/stowage/disks/links/a", mark)
	unmarked, elsewhere := found("/mnt/disks/a", nil), found("/mnt/elsewhere/a", mark)
	made := volume(map[string]any{"csi": map[string]any{"driver": "local.csi.stowage.dev"}})
	rows := map[string]allowance{}
	row := func(name string, before, after map[string]any, allowed bool) {
		rows["found, "+name] = allowance{change{user, "persistentvolumes", "", before, after}, allowed, allowed}
	}
	row("offer a filesystem", nil, mounted, true)
	row("offer a device", nil, device, true)
	row("reserve it", mounted, mounted, true)
	row("remove it", mounted, nil, true)
	row("reserve what an older configuration offered", elsewhere, elsewhere, true)
	row("remove what an older configuration offered", elsewhere, nil, true)
	row("offer another place", nil, elsewhere, false)
	row("offer the host", nil, found("/", mark), false)
	row("offer the directory itself", nil, found("/mnt/disks/", mark), false)
	row("offer the directory by another name", nil, found("/mnt/disks/.", mark), false)
	row("offer the directory of devices", nil, found("/var/lib/stowage/disks/links/.", mark), false)
	row("offer what is above", nil, found("/mnt/disks/..", mark), false)
	row("offer below an offer", nil, found("/mnt/disks/a/b", mark), false)
	row("offer beside the directory", nil, found("/mnt/disksa", mark), false)
	row("offer without the mark", nil, unmarked, false)
	row("offer as another", nil, found("/mnt/disks/a", other), false)
	row("take over", unmarked, mounted, false)
	row("remove the mark", mounted, unmarked, false)
	row("remove another's", found("/mnt/disks/a", other), nil, false)
	row("make a driver's", nil, made, serves)
	row("remove a driver's", made, nil, serves)
	return rows
}

// verdicts returns a function that evaluates the policies in force for a change. Each policy is compiled once.
func verdicts(t *testing.T, objects []object) func(change) string {
	t.Helper()
	type compiled struct {
		policy    *admissionregistrationv1.ValidatingAdmissionPolicy
		validator validating.Validator
	}
	all := map[string][]compiled{}
	return func(c change) (refusal string) {
		of := c.resource + "/" + c.sub
		if _, ok := all[of]; !ok {
			all[of] = nil
			for _, policy := range policies(t, objects, c.resource, c.sub) {
				all[of] = append(all[of], compiled{policy, validator(t, policy)})
			}
		}
		for _, one := range all[of] {
			if covers(one.policy, c) {
				refusal += refused(t, one.validator, c)
			}
		}
		return refusal
	}
}

// covers reports whether a policy for the resource of a change is also for its operation.
func covers(policy *admissionregistrationv1.ValidatingAdmissionPolicy, c change) bool {
	return slices.ContainsFunc(policy.Spec.MatchConstraints.ResourceRules,
		func(rule admissionregistrationv1.NamedRuleWithOperations) bool {
			return slices.Contains(rule.Resources, c.path()) && (slices.Contains(rule.Operations, "*") ||
				slices.Contains(rule.Operations, admissionregistrationv1.OperationType(c.operation())))
		})
}

// policies returns the policies in force for updates of a resource, except those with parameters.
func policies(t *testing.T, objects []object, resource,
	sub string) (list []*admissionregistrationv1.ValidatingAdmissionPolicy) {
	t.Helper()
	if sub != "" {
		resource += "/" + sub
	}
	for _, o := range objects {
		policy, is := typed(t, o).(*admissionregistrationv1.ValidatingAdmissionPolicy)
		if !is || policy.Spec.ParamKind != nil {
			continue
		}
		for _, rule := range policy.Spec.MatchConstraints.ResourceRules {
			for _, r := range rule.Resources {
				if r == resource && inForce(t, objects, policy.Name) {
					list = append(list, policy)
				}
			}
		}
	}
	return list
}

// inForce reports whether a policy has a binding of its name that denies everywhere.
func inForce(t *testing.T, objects []object, name string) bool {
	t.Helper()
	found := typed(t, find(t, objects, "ValidatingAdmissionPolicyBinding/"+name))
	binding := found.(*admissionregistrationv1.ValidatingAdmissionPolicyBinding)
	actions := binding.Spec.ValidationActions
	return binding.Spec.PolicyName == name && binding.Spec.MatchResources == nil && len(actions) == 1 &&
		actions[0] == admissionregistrationv1.Deny
}

// TestAccounts checks that the policies are for the account of the pods whose sidecars have a token, and that sidecars
// beside a master have its account.
func TestAccounts(t *testing.T) {
	for _, in := range installs() {
		for way, objects := range map[string][]object{"kustomize": kustomized(t, in.folder),
			"helm": charted(t, in.values, in.schemaless)} {
			for id, pod := range pods(t, objects) {
				is := slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == "csi-provisioner" })
				if want := in.account(); is && pod.Spec.ServiceAccountName != want {
					t.Errorf("%s, %s: %s has the account %s, and the policies are for %s", in.name, way, id,
						pod.Spec.ServiceAccountName, want)
				}
			}
		}
	}
}

// TestMasterIsOnTrustedNodes checks that the master, whose policies allow it the volumes of all nodes, runs by default
// only on nodes without tenants' pods.
func TestMasterIsOnTrustedNodes(t *testing.T) {
	for _, in := range installs() {
		if !in.cluster {
			continue
		}
		for way, objects := range map[string][]object{"kustomize": kustomized(t, in.folder),
			"helm": charted(t, in.values, in.schemaless)} {
			nodes := pods(t, objects)[disksMaster].Spec.NodeSelector
			if _, trusted := nodes["node-role.kubernetes.io/control-plane"]; !trusted {
				t.Errorf("%s, %s: the master runs on nodes of the labels %v", in.name, way, nodes)
			}
		}
	}
}

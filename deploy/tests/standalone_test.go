package tests

import (
	"maps"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
)

const (
	sidecars    = "system:serviceaccount:stowage-system:stowage-local-controller"
	elsewhere   = "system:serviceaccount:storage:x-stowage-local-controller" // as an overlay renames it
	localDriver = "local.csi.stowage.dev"
	provisioner = "volume.kubernetes.io/storage-provisioner"
	node        = "volume.kubernetes.io/selected-node"
	grown       = "volume.kubernetes.io/node-expansion-not-required"
	protection  = "provisioner.storage.kubernetes.io/cloning-protection"
)

// allowance is a change by the account of the standalone's sidecars, and whether it may be made: without the manager of sets, and with it.
type allowance struct {
	change
	alone, managed bool
}

func volume(source map[string]any) map[string]any { return map[string]any{"spec": source} }

func ours() map[string]any {
	return volume(map[string]any{"csi": map[string]any{"driver": localDriver}})
}

// claim is a claim of a driver with what is changed in it, by the path of its fields.
func claim(driver string, annotations map[string]any, spec map[string]any, finalizers ...any) map[string]any {
	all := map[string]any{}
	if driver != "" {
		all[provisioner] = driver
	}
	maps.Copy(all, annotations)
	whole := map[string]any{"storageClassName": "a", "resources": map[string]any{"requests": map[string]any{"storage": "1Gi"}}}
	maps.Copy(whole, spec)
	return map[string]any{"metadata": map[string]any{"name": "x", "annotations": all, "finalizers": finalizers}, "spec": whole}
}

func allowances() map[string]allowance {
	const pv, pvc = "persistentvolumes", "persistentvolumeclaims"
	host := volume(map[string]any{"hostPath": map[string]any{"path": "/"}})
	other := volume(map[string]any{"csi": map[string]any{"driver": "other.example"}})
	plain, foreign := claim(localDriver, nil, nil), claim("other.example", nil, nil)
	bound := map[string]any{"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"}
	named := map[string]any{"volumeName": "pv-1"}
	write := func(resource, sub string, before, after map[string]any) change {
		return change{sidecars, resource, sub, before, after}
	}
	return map[string]allowance{
		"make a volume":             {write(pv, "", nil, ours()), true, true},
		"change a volume":           {write(pv, "", ours(), ours()), true, true},
		"remove a volume":           {write(pv, "", ours(), nil), true, true},
		"a volume's phase":          {write(pv, "status", ours(), ours()), true, true},
		"make a host's volume":      {write(pv, "", nil, host), false, false},
		"make another's volume":     {write(pv, "", nil, other), false, false},
		"change another's volume":   {write(pv, "", other, other), false, false},
		"remove another's volume":   {write(pv, "", other, nil), false, false},
		"remove a host's volume":    {write(pv, "", host, nil), false, false},
		"another's volume's phase":  {write(pv, "status", other, other), false, false},
		"protect a clone's source":  {write(pvc, "", plain, claim(localDriver, nil, nil, protection)), true, true},
		"protect it no more":        {write(pvc, "", claim("", nil, nil, "a", protection), claim("", nil, nil, "a")), true, true},
		"give back to scheduler":    {write(pvc, "", claim(localDriver, map[string]any{node: "a"}, nil), plain), true, true},
		"choose another node":       {write(pvc, "", claim(localDriver, map[string]any{node: "a"}, nil), claim(localDriver, map[string]any{node: "b"}, nil)), false, false},
		"take over a claim":         {write(pvc, "", foreign, plain), false, false},
		"remove a finalizer":        {write(pvc, "", claim(localDriver, nil, nil, "kubernetes.io/pvc-protection"), plain), false, false},
		"add an annotation":         {write(pvc, "", plain, claim(localDriver, map[string]any{"a": "b"}, nil)), false, false},
		"ask for more":              {write(pvc, "", plain, claim(localDriver, nil, map[string]any{"resources": map[string]any{"requests": map[string]any{"storage": "9Gi"}}})), false, false},
		"another class":             {write(pvc, "", plain, claim(localDriver, nil, map[string]any{"volumeAttributesClassName": "b"})), false, false},
		"bind a claim":              {write(pvc, "", plain, claim(localDriver, bound, named)), false, true},
		"bind it elsewhere":         {write(pvc, "", claim(localDriver, bound, named), claim(localDriver, bound, map[string]any{"volumeName": "pv-2"})), false, false},
		"write a claim's size":      {write(pvc, "status", plain, plain), true, true},
		"that of a claim by hand":   {write(pvc, "status", claim("", nil, nil), claim("", nil, nil)), true, true},
		"that of another's":         {write(pvc, "status", foreign, foreign), false, false},
		"no node needs to grow it":  {write(pvc, "status", plain, claim(localDriver, map[string]any{grown: "true"}, nil)), true, true},
		"the next growth begins":    {write(pvc, "status", claim(localDriver, map[string]any{grown: "true"}, nil), plain), true, true},
		"with a new annotation":     {write(pvc, "status", plain, claim(localDriver, map[string]any{"a": "b"}, nil)), false, false},
		"a host's, from elsewhere":  {change{elsewhere, pv, "", nil, host}, false, false},
		"a claim, from elsewhere":   {change{elsewhere, pvc, "", foreign, plain}, false, false},
		"somebody else's host path": {change{"admin", pv, "", nil, host}, true, true},
		"somebody else's claim":     {change{"admin", pvc, "", foreign, plain}, true, true},
	}
}

// TestStandaloneWrites checks what the policies leave of the rights on volumes and claims that the standalone's sidecars have: RBAC cannot say
// "of this driver". The node whose disks these are has their token.
func TestStandaloneWrites(t *testing.T) {
	for _, in := range installs() {
		if in.backend != "local" {
			continue
		}
		t.Run(in.name, func(t *testing.T) {
			objects := kustomized(t, in.folder)
			for name, a := range allowances() {
				said := ""
				for _, policy := range policies(t, objects, a.resource, a.sub) {
					said += refusal(t, policy, a.change)
				}
				want := a.alone
				if in.manager {
					want = a.managed
				}
				if (said == "") != want || said != "" && !strings.Contains(said, localDriver) {
					t.Errorf("%s: allowed is %t, want %t: %q", name, said == "", want, said)
				}
			}
		})
	}
}

// policies are those for updates of a resource that are in force, without those that have parameters.
func policies(t *testing.T, objects []object, resource, sub string) (list []*admissionregistrationv1.ValidatingAdmissionPolicy) {
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
	binding := typed(t, find(t, objects, "ValidatingAdmissionPolicyBinding/"+name)).(*admissionregistrationv1.ValidatingAdmissionPolicyBinding)
	actions := binding.Spec.ValidationActions
	return binding.Spec.PolicyName == name && binding.Spec.MatchResources == nil && len(actions) == 1 && actions[0] == admissionregistrationv1.Deny
}

// TestStandaloneAccount checks that the policies are for the account that the pod has.
func TestStandaloneAccount(t *testing.T) {
	for id, pod := range pods(t, kustomized(t, installs()[0].folder)) {
		if want := strings.TrimPrefix(sidecars, "system:serviceaccount:"+"stowage-system:"); pod.Spec.ServiceAccountName != want {
			t.Errorf("%s has the account %s, and the policies are for %s", id, pod.Spec.ServiceAccountName, want)
		}
	}
	release := charted(t, map[string]any{}, false)
	for _, resource := range []corev1.ResourceName{"persistentvolumes", "persistentvolumeclaims"} {
		if len(policies(t, release, string(resource), "")) != 1 {
			t.Errorf("the chart has no policy in force for %s", resource)
		}
	}
}

package tests

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

const (
	recycler  = "system:serviceaccount:recycler:stowage-recycler"
	recycle   = "stowage.dev/recycle"
	recycling = "stowage.dev/recycling"
)

// recyclerSays returns a function that evaluates the policies for the recycler's account, with an image in the
// parameter of the policy for images.
func recyclerSays(t *testing.T, objects []object, image string) func(change) string {
	t.Helper()
	others, policy := verdicts(t, objects), policyIn(t, objects, "stowage-recycler-images")
	v := validator(t, policy)
	return func(c change) string {
		if refusal := others(c); refusal != "" || !covers(policy, c) {
			return refusal
		}
		return refusedWith(t, v, c, scrubImage(image))
	}
}

// scrubImage returns a ServiceAccount whose annotation names an image.
func scrubImage(image string) fields {
	return fields{"metadata": fields{"name": "stowage-recycler", "namespace": "recycler",
		"annotations": fields{"stowage.dev/scrub-image": image}}}
}

// listOf returns a ServiceAccount with a list of classes.
func listOf(name, classes string) fields {
	return fields{"metadata": fields{"name": name, "namespace": "a", "annotations": fields{
		"stowage.dev/recycled-classes": classes}},
		"automountServiceAccountToken": false}
}

// recorded are the writes of the recycler in pkg/controllers/recycler, by their forms.
func recorded(t *testing.T) map[string]change {
	t.Helper()
	var list []struct {
		Form, Resource, Sub string
		Before, After       map[string]any
	}
	// The volume of the simulation has another driver.
	text := strings.ReplaceAll(readText(t, "../../pkg/controllers/recycler/testdata/writes.json"), `"driver": "driver"`,
		`"driver": "local.csi.stowage.dev"`)
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatal(err)
	}
	all := map[string]change{}
	for _, one := range list {
		all[one.Form] = change{recycler, one.Resource, one.Sub, one.Before, one.After}
	}
	return all
}

// TestRecyclerWrites checks that the policies allow each write that the recycler makes.
func TestRecyclerWrites(t *testing.T) {
	all := recorded(t)
	if len(all) < 10 {
		t.Fatalf("there are %d writes", len(all))
	}
	for way, objects := range map[string][]object{"kustomize": kustomized(t, recyclerFolder),
		"helm": chartedRecycler(t)} {
		said := recyclerSays(t, objects, "i")
		for form, c := range all {
			if refusal := said(c); refusal != "" {
				t.Errorf("%s: %s: %s", way, form, refusal)
			}
		}
	}
}

// recycledVolume returns a volume of a driver with the annotations, the claim and the phase.
func recycledVolume(driver string, annotations fields, claim string, phase string, more ...fields) fields {
	spec := fields{"csi": fields{"driver": driver, "volumeHandle": "a"}, "persistentVolumeReclaimPolicy": "Retain",
		"capacity": fields{"storage": "1Gi"}}
	if claim != "" {
		spec["claimRef"] = fields{"kind": "PersistentVolumeClaim", "namespace": claim, "name": "a", "uid": "a"}
	}
	for _, fields := range more {
		maps.Copy(spec, fields)
	}
	return fields{"metadata": fields{"name": "x", "annotations": annotations, "finalizers": []any{"a"}}, "spec": spec,
		"status": fields{"phase": phase}}
}

// thefts are the writes of an attacker with the recycler's token, which are refused.
func thefts() map[string]change {
	const driver = "local.csi.stowage.dev"
	marked, begun := fields{recycle: "true"}, fields{recycle: "true", recycling: "{}"}
	of := func(annotations fields, claim, phase string, more ...fields) fields {
		return recycledVolume(driver, annotations, claim, phase, more...)
	}
	rows := map[string]change{}
	row := func(name, resource, sub string, before, after fields) {
		rows[name] = change{recycler, resource, sub, before, after}
	}
	volume := func(name string, before, after fields) { row(name, "persistentvolumes", "", before, after) }
	volume("make a volume", nil, of(marked, "", ""))
	volume("remove a volume", of(marked, "", "Available"), nil)
	volume("mark a volume", of(nil, "b", "Released"), of(marked, "b", "Released"))
	volume("begin without a mark", of(nil, "b", "Released"), of(fields{recycling: "{}"}, "b", "Released"))
	volume("take a volume without a mark", of(nil, "b", "Released"), of(nil, "recycler", "Released"))
	volume("take a bound volume", of(begun, "b", "Bound"), of(begun, "recycler", "Bound"))
	volume("take an available volume", of(begun, "", "Available"), of(begun, "recycler", "Available"))
	deleted := fields{"persistentVolumeReclaimPolicy": "Delete"}
	volume("take a volume of policy Delete", of(begun, "b", "Released", deleted),
		of(begun, "recycler", "Released", deleted))
	volume("give a volume to another claim", of(begun, "b", "Released"), of(begun, "c", "Released"))
	volume("give its own to another claim", of(begun, "recycler", "Released"), of(begun, "c", "Released"))
	volume("free another's claim's volume", of(begun, "b", "Released"), of(begun, "", "Released"))
	volume("take another driver's volume", recycledVolume("other.example", begun, "b", "Released"),
		recycledVolume("other.example", begun, "recycler", "Released"))
	volume("change the policy", of(begun, "b", "Released"),
		of(begun, "b", "Released", deleted))
	volume("change the class", of(begun, "b", "Released"), of(begun, "b", "Released", fields{"storageClassName": "b"}))
	volume("another annotation", of(begun, "b", "Released"), of(fields{recycle: "true", "a": "b"}, "b", "Released"))
	volume("remove an annotation", of(fields{recycle: "true", "a": "b"}, "b", "Released"), of(marked, "b", "Released"))
	unheld := of(begun, "b", "Released")
	unheld["metadata"] = fields{"name": "x", "annotations": begun}
	volume("remove a finalizer", of(begun, "b", "Released"), unheld)
	row("make it available", "persistentvolumes", "status", of(begun, "b", "Released"), of(begun, "b", "Available"))
	row("fail one without a mark", "persistentvolumes", "status", of(nil, "b", "Bound"), of(nil, "b", "Failed"))

	scrub := fields{"name": "x", "labels": fields{recycling: "a"},
		"annotations": fields{"stowage.dev/recycled-volume": "v"}}
	claim := func(name string, before, after fields) { row(name, "persistentvolumeclaims", "", before, after) }
	claim("a claim for no volume", nil, fields{"metadata": scrub, "spec": fields{}})
	claim("a claim for another volume", nil, fields{"metadata": scrub, "spec": fields{"volumeName": "b"}})
	claim("a claim with a source", nil, fields{"metadata": scrub,
		"spec": fields{"volumeName": "v", "dataSource": fields{"kind": "VolumeSnapshot"}}})
	claim("another claim", nil, fields{"metadata": fields{"name": "x"}, "spec": fields{"volumeName": "v"}})
	claim("remove another claim", fields{"metadata": fields{"name": "x"}, "spec": fields{}}, nil)
	row("another account", "serviceaccounts", "", nil, listOf("a", "b"))
	row("the recycler's image", "serviceaccounts", "", scrubImage("i"), scrubImage("j"))
	row("forget a class", "serviceaccounts", "", listOf(recycledClasses, "a,b"), listOf(recycledClasses, "b"))
	row("remove the list", "serviceaccounts", "", listOf(recycledClasses, "a"), nil)
	return rows
}

// TestRecyclerIsContained checks that the policies refuse the writes of an attacker with the recycler's token, and
// nobody else's.
func TestRecyclerIsContained(t *testing.T) {
	made := recorded(t)["pods: none -> 1 finalizers"].after
	for way, objects := range map[string][]object{"kustomize": kustomized(t, recyclerFolder),
		"helm": chartedRecycler(t)} {
		said := recyclerSays(t, objects, "i")
		all := thefts()
		maps.Copy(all, podThefts(made))
		for name, c := range all {
			if refusal := said(c); !strings.Contains(refusal, "the recycler ") {
				t.Errorf("%s: %s: it is refused with %q", way, name, refusal)
			}
			if c.user = "admin"; said(c) != "" {
				t.Errorf("%s: %s by somebody else: %s", way, name, said(c))
			}
		}
		for name, pod := range scrubPods(made) {
			if refusal := said(change{recycler, "pods", "", nil, pod}); refusal != "" {
				t.Errorf("%s: %s: %s", way, name, refusal)
			}
		}
		for name, c := range map[string]change{
			"the first class": {recycler, "serviceaccounts", "", nil, listOf(recycledClasses, "a")},
			"another class":   {recycler, "serviceaccounts", "", listOf(recycledClasses, "a"), listOf(recycledClasses, "a,b")},
			"the first again": {recycler, "serviceaccounts", "", listOf(recycledClasses, ""), listOf(recycledClasses, "a")},
			"drop the record": {recycler, "persistentvolumes", "",
				recycledVolume("ebs.csi.stowage.dev", fields{recycling: "{}", "a": "b"}, "b", "Bound"),
				recycledVolume("ebs.csi.stowage.dev", fields{"a": "b"}, "b", "Bound")},
		} {
			if refusal := said(c); refusal != "" {
				t.Errorf("%s: %s: %s", way, name, refusal)
			}
		}
	}
}

// copied returns a deep copy of an object.
func copied(o map[string]any) map[string]any {
	all := maps.Clone(o)
	for name, value := range o {
		if inner, is := value.(map[string]any); is {
			all[name] = copied(inner)
		}
	}
	return all
}

// part returns an object in a field of another.
func part(o map[string]any, field string) map[string]any {
	inner, _ := o[field].(map[string]any)
	return inner
}

// podWith returns a pod whose container has another field.
func podWith(pod map[string]any, field string, value any) map[string]any {
	all := copied(pod)
	spec, _ := all["spec"].(map[string]any)
	containers, _ := spec["containers"].([]any)
	container, _ := containers[0].(map[string]any)
	container = copied(container)
	container[field] = value
	spec["containers"] = []any{container}
	return all
}

// withSpec returns a pod whose spec has other fields.
func withSpec(pod, changed fields) fields {
	all := copied(pod)
	spec, _ := all["spec"].(map[string]any)
	maps.Copy(spec, changed)
	return all
}

// security returns the fields of a scrub pod's security context, with changed ones.
func security(changed fields) fields {
	all := fields{"runAsUser": 0, "runAsGroup": 0, "seccompProfile": fields{"type": "RuntimeDefault"}}
	maps.Copy(all, changed)
	return fields{"securityContext": all}
}

// scrubPods are forms of a scrub pod, which are allowed.
func scrubPods(pod fields) map[string]fields {
	block := podWith(pod, "volumeDevices", []any{fields{"name": "volume", "devicePath": "/volume"}})
	container, _ := block["spec"].(fields)["containers"].([]any)[0].(fields)
	delete(container, "volumeMounts")
	lasting := func(taint string) fields {
		return fields{"key": "node.kubernetes.io/" + taint, "operator": "Exists", "effect": "NoExecute",
			"tolerationSeconds": 300}
	}
	return map[string]fields{
		"a block device": block,
		"with the defaults of the API server 1.36": withSpec(podWith(pod, "terminationMessagePath", "/dev/termination-log"),
			fields{"terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst", "serviceAccountName": "default",
				"serviceAccount": "default", "schedulerName": "default-scheduler", "priority": 0,
				"preemptionPolicy": "PreemptLowerPriority",
				"tolerations":      []any{lasting("not-ready"), lasting("unreachable")}}),
		"with what OpenShift adds": withSpec(podWith(pod, "securityContext", fields{"allowPrivilegeEscalation": false,
			"capabilities": fields{"drop": []any{"ALL", "MKNOD"}, "add": []any{"DAC_OVERRIDE", "FOWNER"}}}),
			security(fields{"fsGroup": 1000, "seLinuxOptions": fields{"level": "s0:c1,c2"}})),
	}
}

// podThefts are changes of a scrub pod, which are refused.
func podThefts(pod map[string]any) map[string]change {
	rows := map[string]change{}
	create := func(name string, after map[string]any) { rows["pod, "+name] = change{recycler, "pods", "", nil, after} }
	spec := func(field string, value any) map[string]any {
		all := copied(pod)
		part(all, "spec")[field] = value
		return all
	}
	create("another image", podWith(pod, "image", "k"))
	create("another program", podWith(pod, "command", []any{"/bin/sh"}))
	create("other arguments", podWith(pod, "args", []any{"scrub", "--path=/"}))
	create("variables of a Secret", podWith(pod, "envFrom", []any{fields{"secretRef": fields{"name": "a"}}}))
	create("a hook", podWith(pod, "lifecycle", fields{"postStart": fields{"exec": fields{"command": []any{"a"}}}}))
	create("privileged", podWith(pod, "securityContext", fields{"privileged": true}))
	create("another capability", podWith(pod, "securityContext", fields{"allowPrivilegeEscalation": false,
		"capabilities": fields{"drop": []any{"ALL"}, "add": []any{"SYS_ADMIN"}}}))
	mount := func(more fields) []any {
		all := fields{"name": "volume", "mountPath": "/volume"}
		maps.Copy(all, more)
		return []any{all}
	}
	create("a tenant's program", podWith(pod, "volumeMounts", mount(fields{"mountPath": "/stowage", "subPath": "a"})))
	create("a part of the volume", podWith(pod, "volumeMounts", mount(fields{"subPath": "a"})))
	create("a volume elsewhere", podWith(pod, "volumeMounts", mount(fields{"mountPath": "/"})))
	create("a second mount", podWith(pod, "volumeMounts", append(mount(nil), mount(fields{"mountPath": "/lib"})...)))
	create("a device elsewhere", podWith(pod, "volumeDevices", []any{fields{"name": "volume", "devicePath": "/stowage"}}))
	unconfined := security(fields{"seccompProfile": fields{"type": "Unconfined"}})
	create("all system calls", withSpec(pod, unconfined))
	create("another SELinux type", withSpec(pod, security(fields{"seLinuxOptions": fields{"type": "spc_t"}})))
	create("two containers", spec("containers", []any{fields{"name": "a", "image": "i"},
		fields{"name": "b", "image": "i"}}))
	create("no container", spec("containers", []any{}))
	create("another container before it", spec("initContainers", []any{fields{"name": "b", "image": "i"}}))
	create("a token", spec("automountServiceAccountToken", true))
	create("the recycler's account", spec("serviceAccountName", "stowage-recycler"))
	create("a chosen node", spec("nodeName", "a"))
	create("the node's network", spec("hostNetwork", true))
	create("the node's files", spec("volumes", []any{fields{"name": "volume", "hostPath": fields{"path": "/"}}}))
	create("a Secret", spec("volumes", []any{fields{"name": "volume", "secret": fields{"secretName": "a"}}}))
	create("another claim", spec("volumes", []any{fields{"name": "volume",
		"persistentVolumeClaim": fields{"claimName": "b"}}}))
	unheld, unmarked := copied(pod), copied(pod)
	delete(part(unheld, "metadata"), "finalizers")
	delete(part(unmarked, "metadata"), "labels")
	create("no finalizer", unheld)
	create("no mark", unmarked)
	rows["pod, remove another"] = change{recycler, "pods", "", unmarked, nil}
	rows["pod, another image later"] = change{recycler, "pods", "", pod, podWith(pod, "image", "j")}
	rows["pod, add a finalizer"] = change{recycler, "pods", "", unheld, pod}
	return rows
}

// TestRecyclerDrivers checks that the policy names the drivers of the recycler's flag, that the chart writes its value
// to both, and that the policy for images reads the recycler's image in the annotation of its account.
func TestRecyclerDrivers(t *testing.T) {
	chosen := charted(t, map[string]any{"recycler": map[string]any{"enabled": true,
		"drivers": []any{"nfs.csi.stowage.dev", "other.example"}}}, false)
	for way, objects := range map[string][]object{"kustomize": kustomized(t, recyclerFolder), "helm": chosen} {
		policy := policyIn(t, objects, "stowage-recycler-volumes")
		var drivers []string
		if err := json.Unmarshal([]byte(policy.Spec.Variables[0].Expression), &drivers); err != nil {
			t.Fatal(err)
		}
		deployment := as[*appsv1.Deployment](t, objects, "Deployment/stowage-recycler/recycler")
		hasFlags(t, deployment.Spec.Template.Spec.Containers[0], "--drivers="+strings.Join(drivers, ","))
		binding := as[*admissionregistrationv1.ValidatingAdmissionPolicyBinding](t, objects,
			"ValidatingAdmissionPolicyBinding/stowage-recycler-images")
		if ref := binding.Spec.ParamRef; ref.Name != "stowage-recycler" || ref.Namespace != "stowage-recycler" ||
			*ref.ParameterNotFoundAction != admissionregistrationv1.DenyAction {
			t.Errorf("%s: the policy for images is bound to %+v", way, ref)
		}
		account := as[*corev1.ServiceAccount](t, objects, "ServiceAccount/stowage-recycler/stowage-recycler")
		image := deployment.Spec.Template.Spec.Containers[0].Image
		if account.Annotations["stowage.dev/scrub-image"] != image {
			t.Errorf("%s: the scrubs may have the image %v, and the recycler has %s", way, account.Annotations, image)
		}
		if account := deployment.Spec.Template.Spec.ServiceAccountName; account != "stowage-recycler" {
			t.Errorf("%s: the policies are not for the account %s", way, account)
		}
	}
}

// TestMissingParameterStopsNobodyElse checks that a policy which refuses requests while its parameter is missing has a
// selector of objects. The API server looks for the parameter before it evaluates the conditions that name an account,
// so that without a selector nobody could write such objects in the whole cluster.
func TestMissingParameterStopsNobodyElse(t *testing.T) {
	bound := 0
	for where, objects := range installations(t) {
		for _, o := range objects {
			binding, is := typed(t, o).(*admissionregistrationv1.ValidatingAdmissionPolicyBinding)
			if !is || binding.Spec.ParamRef == nil {
				continue
			}
			if *binding.Spec.ParamRef.ParameterNotFoundAction != admissionregistrationv1.DenyAction {
				continue
			}
			bound++
			policy := policyIn(t, objects, binding.Spec.PolicyName)
			selector := policy.Spec.MatchConstraints.ObjectSelector
			if selector == nil || len(selector.MatchExpressions)+len(selector.MatchLabels) == 0 {
				t.Errorf("%s: while the parameter of %s is missing, nobody writes %v", where, policy.Name,
					policy.Spec.MatchConstraints.ResourceRules[0].Resources)
			}
		}
	}
	if bound < 2 {
		t.Errorf("%d bindings were looked at", bound)
	}
}

// TestParametersAreWatched checks that the parameters of policies are of kinds that an API server watches as long as it
// runs, or of Stowage's own. It watches any other kind, such as ConfigMaps, for policies alone. It ends that watch with
// the last policy and never begins it again, so that the policy of a second installation would see old objects.
func TestParametersAreWatched(t *testing.T) {
	kinds := map[string]bool{"v1/ServiceAccount": true, "storage.k8s.io/v1/StorageClass": true,
		"stowage.dev/v1alpha1/NodeStorage": true, "stowage.dev/v1alpha1/PersistentVolumeSet": true}
	seen := map[string]bool{}
	for where, objects := range installations(t) {
		for _, o := range objects {
			policy, is := typed(t, o).(*admissionregistrationv1.ValidatingAdmissionPolicy)
			if !is || policy.Spec.ParamKind == nil {
				continue
			}
			kind := policy.Spec.ParamKind.APIVersion + "/" + policy.Spec.ParamKind.Kind
			if seen[kind] = true; !kinds[kind] {
				t.Errorf("%s: %s has a parameter of the kind %s", where, policy.Name, kind)
			}
		}
	}
	if !maps.Equal(seen, kinds) {
		t.Errorf("the kinds of parameters are %v", seen)
	}
}

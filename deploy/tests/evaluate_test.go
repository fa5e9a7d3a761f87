package tests

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// TestPoliciesEvaluate checks that no expression of a policy fails to evaluate, for each operation and resource that
// the policy covers, on objects that have only the fields that the API requires. Such a failure is a refusal, because
// the policies fail closed.
func TestPoliciesEvaluate(t *testing.T) {
	all, seen := installations(t), map[string]bool{}
	for _, where := range slices.Sorted(maps.Keys(all)) {
		for _, o := range all[where] {
			policy, is := typed(t, o).(*admissionregistrationv1.ValidatingAdmissionPolicy)
			text := fmt.Sprint(o.Object["spec"])
			if !is || seen[text] {
				continue
			}
			seen[text] = true
			t.Run(where+"/"+policy.Name, func(t *testing.T) { evaluates(t, policy) })
		}
	}
}

// installations returns the objects of each installation, of the recycler too, by its name.
func installations(t *testing.T) map[string][]object {
	t.Helper()
	all := map[string][]object{"found disks": kustomized(t, disksFolder), "recycler": kustomized(t, recyclerFolder),
		"recycler, helm": chartedRecycler(t)}
	for _, in := range installs() {
		all[in.name] = kustomized(t, in.folder)
		all[in.name+", helm"] = charted(t, in.values, in.schemaless)
	}
	return all
}

func evaluates(t *testing.T, policy *admissionregistrationv1.ValidatingAdmissionPolicy) {
	t.Helper()
	v, calls := validator(t, policy), 0
	for _, rule := range policy.Spec.MatchConstraints.ResourceRules {
		for _, path := range rule.Resources {
			resource, sub, _ := strings.Cut(strings.Replace(path, "/*", "/status", 1), "/")
			for _, c := range writes(change{user: userOf(t, policy), resource: resource, sub: sub}) {
				if !covers(policy, c) {
					continue
				}
				calls++
				for _, params := range parameters(policy) {
					for _, result := range v.Validate(context.Background(), c.gvr(), c.attributes(), content(params), nil,
						celconfig.RuntimeCELCostBudget, nil).Decisions {
						if result.Evaluation == validating.EvalError ||
							strings.HasPrefix(result.Message, "failed expression: ") {
							t.Errorf("%s of %s, from %v to %v: %s", c.operation(), c.path(), c.before, c.after, result.Message)
						}
					}
				}
			}
		}
	}
	if calls == 0 {
		t.Error("nothing was evaluated")
	}
}

// userOf returns a user whom a policy is for: by the condition, the account of a name, or everybody.
func userOf(t *testing.T, policy *admissionregistrationv1.ValidatingAdmissionPolicy) string {
	t.Helper()
	for _, condition := range policy.Spec.MatchConditions {
		if strings.Contains(condition.Expression, "request.userInfo.username") {
			account := regexp.MustCompile(`\[\^:\]\*([a-z-]+)\[\^:\]\*\$`).FindStringSubmatch(condition.Expression)
			if account == nil {
				t.Fatalf("%s is for an account of no known form: %s", policy.Name, condition.Expression)
			}
			return "system:serviceaccount:a:" + account[1]
		}
	}
	return "admin"
}

// writes returns the creation, the changes and the deletion of objects in several shapes, by the same user.
func writes(c change) (all []change) {
	shapes := []map[string]any{nil}
	for _, annotations := range []map[string]any{nil, {}, {"a": "b"}, {provisioner: "other.example"},
		{oldClass: "a", "stowage.dev/recycle": "true", "stowage.dev/recycling": "{}"}} {
		for _, spec := range []map[string]any{{}, {"dataSource": map[string]any{}},
			{"dataSourceRef": map[string]any{}, "volumeName": "a", "claimRef": map[string]any{}},
			{"csi": map[string]any{"driver": "other.example"}, "driver": "other.example", "attacher": "other.example"},
			{"csi": map[string]any{"driver": "local.csi.stowage.dev"}}, {"local": map[string]any{"path": "/mnt/disks/a"}},
			{"nfs": map[string]any{}, "containers": []any{map[string]any{"name": "a"}}, "volumes": []any{map[string]any{}}},
		} {
			metadata := map[string]any{"name": "x"}
			spec = maps.Clone(spec)
			spec["node"] = "a" // A LocalVolume requires it.
			if annotations != nil {
				metadata["annotations"] = annotations
			}
			shapes = append(shapes, map[string]any{"metadata": metadata, "spec": spec})
		}
	}
	shapes = append(shapes, map[string]any{"metadata": map[string]any{"name": "x", "finalizers": []any{"a"}},
		"spec": map[string]any{"node": "a"}, "status": map[string]any{}, "data": map[string]any{}})
	for _, before := range shapes {
		for _, after := range shapes {
			if c.before, c.after = before, after; before != nil || after != nil {
				all = append(all, c)
			}
		}
	}
	return all
}

// parameters returns objects of the kind of a policy's parameter, with the fields that the API requires.
func parameters(policy *admissionregistrationv1.ValidatingAdmissionPolicy) []map[string]any {
	named := map[string]any{"metadata": map[string]any{"name": "x", "namespace": "a"}}
	switch kind := policy.Spec.ParamKind; {
	case kind == nil:
		return []map[string]any{nil}
	case kind.Kind == "PersistentVolumeSet":
		named["spec"] = map[string]any{"template": map[string]any{"spec": map[string]any{"storageClassName": "a"}}}
		lost := maps.Clone(named)
		lost["status"] = map[string]any{"driver": "a"}
		return []map[string]any{named, lost}
	case kind.Kind == "NodeStorage":
		offering := maps.Clone(named)
		offering["spec"] = map[string]any{"offers": []any{map[string]any{"storageClassName": "a"}}}
		return []map[string]any{named, offering}
	case kind.Kind == "ServiceAccount":
		return []map[string]any{named, scrubImage("i")}
	}
	return []map[string]any{named}
}

// TestPoliciesOfInstallationsAreApart checks that no installation replaces a policy of another by one for another
// account: a cluster may have two installations of a driver while it moves from one to the other.
func TestPoliciesOfInstallationsAreApart(t *testing.T) {
	conditions, by := map[string]string{}, map[string]string{}
	all := installations(t)
	for _, where := range slices.Sorted(maps.Keys(all)) {
		for _, o := range all[where] {
			policy, is := typed(t, o).(*admissionregistrationv1.ValidatingAdmissionPolicy)
			if !is {
				continue
			}
			text := fmt.Sprint(policy.Spec.MatchConditions)
			if other, is := conditions[policy.Name]; is && other != text {
				t.Errorf("%s replaces %s of %s, which is for %s", where, policy.Name, by[policy.Name], other)
			}
			conditions[policy.Name], by[policy.Name] = text, where
		}
	}
}

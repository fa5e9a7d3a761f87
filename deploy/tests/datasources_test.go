package tests

import (
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	oldClass = "volume.beta.kubernetes.io/storage-class"
	// recycledClasses and noClass are the same as in pkg/apis/v1alpha1.
	recycledClasses, noClass = "recycled-classes", "_"
)

// policyOf returns an installed policy.
func policyOf(t *testing.T, folder, name string) *admissionregistrationv1.ValidatingAdmissionPolicy {
	t.Helper()
	return policyIn(t, kustomized(t, folder), name)
}

func policyIn(t *testing.T, objects []object, name string) *admissionregistrationv1.ValidatingAdmissionPolicy {
	t.Helper()
	return as[*admissionregistrationv1.ValidatingAdmissionPolicy](t, objects, "ValidatingAdmissionPolicy/"+name)
}

// as returns the object of a type.
func as[T runtime.Object](t *testing.T, objects []object, id string) T {
	t.Helper()
	one, is := typed(t, find(t, objects, id)).(T)
	if !is {
		t.Fatalf("%s is no %T", id, one)
	}
	return one
}

// claimOf returns a claim of a class, or of none, that restores a snapshot.
func claimOf(class string, changes ...func(claim, spec map[string]any)) map[string]any {
	spec := map[string]any{"dataSource": map[string]any{"kind": "VolumeSnapshot", "name": "backup"}}
	claim := map[string]any{"metadata": map[string]any{"name": "x"}, "spec": spec}
	if class != "" {
		spec["storageClassName"] = class
	}
	for _, change := range changes {
		change(claim, spec)
	}
	return claim
}

func withoutSource(_, spec map[string]any) { delete(spec, "dataSource") }

func withSourceRef(_, spec map[string]any) {
	spec["dataSourceRef"] = spec["dataSource"]
	delete(spec, "dataSource")
}

func annotated(class string) func(claim, spec map[string]any) {
	return func(claim, _ map[string]any) {
		claim["metadata"] = map[string]any{"name": "x", "annotations": map[string]any{oldClass: class}}
	}
}

// sourced is a claim that is created or changed, and whether it is refused.
type sourced struct {
	before, after map[string]any
	params        map[string]any
	refused       bool
}

func (s sourced) check(t *testing.T, policy *admissionregistrationv1.ValidatingAdmissionPolicy, words string) {
	t.Helper()
	c := change{user: "somebody", resource: "persistentvolumeclaims", before: s.before, after: s.after}
	got := refusedWith(t, validator(t, policy), c, s.params)
	if (got != "") != s.refused || s.refused && !strings.Contains(got, words) {
		t.Errorf("it is refused: %t, with %q: want %t, %q", got != "", got, s.refused, words)
	}
}

// TestRestoresOfRecycledClasses checks that no claim with a data source is created in a class that the recycler has
// recorded, and that no other claim is refused.
func TestRestoresOfRecycledClasses(t *testing.T) {
	policy := policyOf(t, recyclerFolder, "stowage-recycler-data-sources")
	list := func(classes ...string) map[string]any { return listOf(recycledClasses, strings.Join(classes, ",")) }
	empty := fields{"metadata": fields{"name": recycledClasses}}
	for name, s := range map[string]sourced{
		"of a noted class":           {nil, claimOf("fast"), list("slow", "fast"), true},
		"by dataSourceRef":           {nil, claimOf("fast", withSourceRef), list("fast"), true},
		"without a source":           {nil, claimOf("fast", withoutSource), list("fast"), false},
		"of another class":           {nil, claimOf("other"), list("fast"), false},
		"before any is noted":        {nil, claimOf("fast"), empty, false},
		"of a class in the old way":  {nil, claimOf("other", annotated("fast")), list("fast"), true},
		"of another in the old way":  {nil, claimOf("fast", annotated("other")), list("fast"), false},
		"of no class":                {nil, claimOf(""), list(noClass), true},
		"of no class, and none is":   {nil, claimOf(""), list("fast"), false},
		"that gets a noted class":    {claimOf(""), claimOf("fast"), list("fast"), true},
		"that was there":             {claimOf("fast"), claimOf("fast"), list("fast"), false},
		"without a class, and bound": {claimOf(""), claimOf(""), list(noClass), false},
	} {
		t.Run(name, func(t *testing.T) { s.check(t, policy, "that was recycled") })
	}
	for _, objects := range [][]object{kustomized(t, recyclerFolder), chartedRecycler(t)} {
		found := typed(t, find(t, objects, "ValidatingAdmissionPolicyBinding/stowage-recycler-data-sources"))
		binding, is := found.(*admissionregistrationv1.ValidatingAdmissionPolicyBinding)
		if !is || binding.Spec.ParamRef.Name != recycledClasses ||
			binding.Spec.ParamRef.Namespace != "stowage-recycler" {
			t.Errorf("the policy is bound to %+v", found)
		}
	}
}

// TestRestoresOfSets checks that no claim with a data source is created in the class of a set, or in a class in which a
// set has unbound volumes of an earlier template.
func TestRestoresOfSets(t *testing.T) {
	set := func(class string, earlier ...any) map[string]any {
		content := map[string]any{
			"metadata": map[string]any{"name": "pool"},
			"spec":     map[string]any{"template": map[string]any{"spec": map[string]any{"storageClassName": class}}},
		}
		if earlier != nil {
			content["status"] = map[string]any{"classes": earlier}
		}
		return content
	}
	lost := func(class string) map[string]any { // by a definition from before classes were recorded
		content := set(class)
		content["status"] = map[string]any{"driver": "local.csi.stowage.dev"}
		return content
	}
	for folder, policy := range map[string]string{
		"kubernetes/overlays/local-standalone-manager": "stowage-local-data-sources",
		"kubernetes/overlays/ebs-manager":              "stowage-ebs-data-sources",
	} {
		policy := policyOf(t, folder, policy)
		for name, s := range map[string]sourced{
			"of the set's class":              {nil, claimOf("fast"), set("fast"), true},
			"by dataSourceRef":                {nil, claimOf("fast", withSourceRef), set("fast"), true},
			"without a source":                {nil, claimOf("fast", withoutSource), set("fast"), false},
			"of another class":                {nil, claimOf("other"), set("fast"), false},
			"of an earlier template's class":  {nil, claimOf("fast"), set("other", "fast", "other"), true},
			"of a class that was left":        {nil, claimOf("fast"), set("other", "other"), false},
			"before there is a status":        {nil, claimOf("other"), set("fast"), false},
			"of a class in the old way":       {nil, claimOf("other", annotated("fast")), set("fast"), true},
			"that gets the set's class":       {claimOf(""), claimOf("fast"), set("fast"), true},
			"that gets an earlier template's": {claimOf(""), claimOf("fast"), set("other", "fast"), true},
			"that was there":                  {claimOf("fast"), claimOf("fast"), set("fast"), false},
			"while the classes are not known": {nil, claimOf("other"), lost("fast"), true},
			"that was there, and the same":    {claimOf("other"), claimOf("other"), lost("fast"), false},
		} {
			t.Run(name, func(t *testing.T) { s.check(t, policy, "of the PersistentVolumeSet pool") })
		}
	}
}

// TestRestoresOfFoundDisks checks that no claim with a data source is created in a class of found disks.
func TestRestoresOfFoundDisks(t *testing.T) {
	class := map[string]any{"metadata": map[string]any{"name": "disks"}}
	policy := policyOf(t, "kubernetes/found-disks", "stowage-disks-data-sources")
	for name, s := range map[string]sourced{
		"of a class of found disks":  {nil, claimOf("disks"), class, true},
		"by dataSourceRef":           {nil, claimOf("disks", withSourceRef), class, true},
		"without a source":           {nil, claimOf("disks", withoutSource), class, false},
		"of another class":           {nil, claimOf("other"), class, false},
		"of a class in the old way":  {nil, claimOf("other", annotated("disks")), class, true},
		"of another in the old way":  {nil, claimOf("disks", annotated("other")), class, false},
		"that gets such a class":     {claimOf(""), claimOf("disks"), class, true},
		"that was there":             {claimOf("disks"), claimOf("disks"), class, false},
		"without a class, and bound": {claimOf(""), claimOf(""), class, false},
	} {
		t.Run(name, func(t *testing.T) { s.check(t, policy, "found disks") })
	}
	found := typed(t, find(t, kustomized(t, "kubernetes/found-disks"),
		"ValidatingAdmissionPolicyBinding/stowage-disks-data-sources"))
	binding, is := found.(*admissionregistrationv1.ValidatingAdmissionPolicyBinding)
	if !is || binding.Spec.ParamRef.Selector.MatchLabels["stowage.dev/local-volumes"] != "true" ||
		len(binding.Spec.ParamRef.Selector.MatchLabels) != 1 {
		t.Errorf("the policy is bound to %+v, want the label by which the master knows its classes, and no other", found)
	}
}

// TestRestoresOfOfferedDisks checks that no claim with a data source is created in a class in which found disks are
// still offered, whatever became of the class, and that both installations look at the master's own objects.
func TestRestoresOfOfferedDisks(t *testing.T) {
	node := func(classes ...string) map[string]any {
		var offers []any
		for _, class := range classes {
			offers = append(offers, map[string]any{"volume": "disk-1", "storageClassName": class})
		}
		return map[string]any{"metadata": map[string]any{"name": "node-1"}, "spec": map[string]any{"offers": offers}}
	}
	unseen := map[string]any{"metadata": map[string]any{"name": "node-1"}}
	policy := policyOf(t, disksFolder, "stowage-disks-offers")
	for name, s := range map[string]sourced{
		"of a class of an offer":      {nil, claimOf("disks"), node("others", "disks"), true},
		"by dataSourceRef":            {nil, claimOf("disks", withSourceRef), node("disks"), true},
		"without a source":            {nil, claimOf("disks", withoutSource), node("disks"), false},
		"of another class":            {nil, claimOf("other"), node("disks"), false},
		"of a node without an offer":  {nil, claimOf("disks"), unseen, false},
		"of a class in the old way":   {nil, claimOf("other", annotated("disks")), node("disks"), true},
		"of another in the old way":   {nil, claimOf("disks", annotated("other")), node("disks"), false},
		"that gets a class of offers": {claimOf(""), claimOf("disks"), node("disks"), true},
		"that was there":              {claimOf("disks"), claimOf("disks"), node("disks"), false},
		"without a class, and bound":  {claimOf(""), claimOf(""), node("disks"), false},
	} {
		t.Run(name, func(t *testing.T) { s.check(t, policy, "still offers found disks") })
	}
	chart := charted(t, map[string]any{"local": map[string]any{"mode": "cluster"}}, false)
	for _, objects := range [][]object{kustomized(t, disksFolder), chart} {
		binding := as[*admissionregistrationv1.ValidatingAdmissionPolicyBinding](t, objects,
			"ValidatingAdmissionPolicyBinding/stowage-disks-offers")
		ref, master := binding.Spec.ParamRef, as[*appsv1.Deployment](t, objects, disksMaster)
		if ref.Namespace != master.Namespace || ref.Selector == nil ||
			len(ref.Selector.MatchLabels)+len(ref.Selector.MatchExpressions) > 0 {
			t.Errorf("the policy is bound to %+v, want all objects in the master's namespace %s", ref, master.Namespace)
		}
	}
}

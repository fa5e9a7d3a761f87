package v1alpha1_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
	"sigs.k8s.io/yaml"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// validator checks what the API server does of a resource, but for rules in CEL.
func validator(t *testing.T, plural string) *validate.SchemaValidator {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../../deploy/kubernetes/crds", "stowage.dev_"+plural+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	crd := struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					OpenAPIV3Schema spec.Schema `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}{}
	if err := yaml.Unmarshal(text, &crd); err != nil {
		t.Fatal(err)
	}
	status := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"]
	return validate.NewSchemaValidator(&status, nil, "", strfmt.Default)
}

// odd are values that a worker may write which is not Stowage's.
func odd() []any {
	all := []any{nil, true, -1.0, 1.5, 1e30, -1e30, int64(math.MaxInt64), float64(1 << 62), int64(1 << 40), []any{},
		map[string]any{}, []any{"x"}, map[string]any{"x": "y"}}
	for _, text := range []string{"", "x", "-1", "1e1.5", "1e99999999999999999999", "12345678901234567890e100000",
		"1Ki", "9Ei", "99999999999999999999Ei", "2020-01-01t00:00:00z", "2020-01-01T00:00:00", "2020-01-01T00:00:60Z",
		"2020-13-41T00:00:00Z", "2020-01-01 00:00:00Z", "0000-00-00T99:99:99Z", strings.Repeat("9", 4096)} {
		all = append(all, text)
	}
	return all
}

// leaves calls the function with each value of an object and how to change it.
func leaves(path string, value any, set func(any), do func(path string, set func(any), value any)) {
	do(path, set, value)
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			leaves(path+"."+key, v[key], func(x any) { v[key] = x }, do)
		}
	case []any:
		for i := range v {
			leaves(fmt.Sprintf("%s[%d]", path, i), v[i], func(x any) { v[i] = x }, do)
		}
	}
}

// TestWhatWorkersWriteCanBeRead checks that no status which the API server admits is one that Go cannot read: one such
// object fails every list of its type, so that one node's worker would blind the masters to all nodes.
func TestWhatWorkersWriteCanBeRead(t *testing.T) {
	order := v1alpha1.OrderStatus{State: v1alpha1.StateReady, Attempt: 1, Message: "m",
		Refusal: &v1alpha1.Refusal{Reason: "r", Message: "m"}}
	for plural, sample := range map[string]any{
		"localvolumes": &v1alpha1.LocalVolume{Status: v1alpha1.VolumeStatus{OrderStatus: order, Capacity: "1Gi",
			NodeExpansion: true, MutableParameters: map[string]string{"onDelete": "retain"}}},
		"localsnapshots": &v1alpha1.LocalSnapshot{Status: v1alpha1.SnapshotStatus{OrderStatus: order, Size: "1Gi",
			TakenAt: "2020-01-01T00:00:00Z"}},
		"localsnapshotgroups": &v1alpha1.LocalSnapshotGroup{Status: v1alpha1.SnapshotGroupStatus{OrderStatus: order,
			Sizes: []v1alpha1.Size{"1Gi"}, TakenAt: "2020-01-01T00:00:00Z"}},
		"nodestorages": &v1alpha1.NodeStorage{Status: v1alpha1.NodeStorageStatus{
			Found: 1, Available: 1, Offered: 1, Deleting: 1,
			Pools: []v1alpha1.PoolStatus{{Name: "p", Type: "image", Available: "1Gi", Largest: "1Gi", Problem: "x"}},
			LocalVolumes: []v1alpha1.LocalVolumeStatus{{Name: "disk-1", Path: "/x", Device: "/dev/x", Capacity: "1Gi",
				VolumeMode: "Block", State: v1alpha1.VolumeDirty, Message: "x"}},
			DeleteOperations: []v1alpha1.DeleteStatus{{ID: "d-1", Volume: "disk-1", State: v1alpha1.DeleteComplete,
				Message: "x", Progress: 1}},
			Conditions: []v1alpha1.Condition{{Type: "Ready", Status: "True", Reason: "x", Message: "x",
				LastTransitionTime: "2020-01-01T00:00:00Z"}},
		}},
	} {
		admits := validator(t, plural)
		text, err := json.Marshal(sample)
		if err != nil {
			t.Fatal(err)
		}
		object := map[string]any{}
		if err := json.Unmarshal(text, &object); err != nil {
			t.Fatal(err)
		}
		tried, admitted := 0, 0
		leaves(plural+".status", object["status"], func(x any) { object["status"] = x },
			func(path string, set func(any), value any) {
				for _, other := range odd() {
					set(other)
					tried++
					if admits.Validate(object["status"]).IsValid() {
						admitted++
						checkReadable(t, path, other, object, sample)
					}
				}
				set(value)
			})
		if result := admits.Validate(object["status"]); !result.IsValid() || admitted == 0 || tried == admitted {
			t.Errorf("%s: of %d values %d are admitted, and of the sample it says %v", plural, tried, admitted, result.Errors)
		}
	}
}

func checkReadable(t *testing.T, path string, value any, object map[string]any, sample any) {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	into := map[string]func() any{
		"*v1alpha1.LocalVolume":        func() any { return &v1alpha1.LocalVolume{} },
		"*v1alpha1.LocalSnapshot":      func() any { return &v1alpha1.LocalSnapshot{} },
		"*v1alpha1.LocalSnapshotGroup": func() any { return &v1alpha1.LocalSnapshotGroup{} },
		"*v1alpha1.NodeStorage":        func() any { return &v1alpha1.NodeStorage{} },
	}[fmt.Sprintf("%T", sample)]()
	if err := json.Unmarshal(text, into); err != nil {
		t.Errorf("%s: the API server admits %v, and nobody can read it: %v", path, value, err)
	}
}

package tests

import (
	"bytes"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/diff"
	"sigs.k8s.io/yaml"
)

// TestMain adds the flag -update.
func TestMain(m *testing.M) {
	flag.Bool("update", false, "rewrite deploy/golden")
	os.Exit(m.Run())
}

func updating() bool { return flag.Lookup("update").Value.String() == "true" }

// TestSameObjects checks that kustomize and Helm install the same objects, field by field.
func TestSameObjects(t *testing.T) {
	for _, in := range installs() {
		t.Run(in.name, func(t *testing.T) {
			compare(t, without(kustomized(t, in.folder), "Namespace/stowage-system"), charted(t, in.values, in.schemaless))
		})
	}
	t.Run("classes", func(t *testing.T) {
		classes := slices.DeleteFunc(charted(t, classValues(), false),
			func(o object) bool { return !strings.Contains(o.GetKind(), "Class") })
		compare(t, kustomized(t, examples), classes)
	})
}

// without removes the one object that Helm cannot create itself: the namespace that contains its release (helm install
// --create-namespace creates it).
func without(objects []object, id string) []object {
	return slices.DeleteFunc(objects, func(o object) bool { return o.id() == id })
}

func compare(t *testing.T, kustomize, helm []object) {
	t.Helper()
	generated := nameGenerated(t, kustomize)
	nameSums(t, helm, generated)
	left, right := byID(t, kustomize), byID(t, helm)
	if a, b := slices.Sorted(maps.Keys(left)), slices.Sorted(maps.Keys(right)); !slices.Equal(a, b) {
		t.Fatalf("kustomize has %q\nHelm has %q", a, b)
	}
	if len(left) == 0 {
		t.Fatal("there is nothing to compare")
	}
	for id, a := range left {
		if b := right[id]; !equality.Semantic.DeepEqual(typed(t, a), typed(t, b)) {
			t.Errorf("%s: kustomize and Helm differ:\n%s", id, diff.Diff(a.Object, b.Object))
		}
	}
}

// reads is the value that nameGenerated and nameSums write for a pod that is recreated when a configuration changes.
const reads = "is read anew by a new pod"

// nameGenerated renames the ConfigMaps that kustomize generates, whose names end in a digest, to Helm's names, also in
// the pods' references, and returns their IDs. kustomize restarts pods by that digest, and Helm by the annotation
// checksum/config: its names stay the same, because Helm removes objects that a release no longer contains, even if
// pods still refer to them. Both are replaced by the same annotation, so that one without the other is a difference.
// The text is rewritten in a canonical form, because values have no comments.
func nameGenerated(t *testing.T, kustomize []object) (ids []string) {
	t.Helper()
	names := map[string]string{}
	for _, o := range kustomize {
		found := regexp.MustCompile(`^(stowage-.+-config)-[a-z0-9]{10}$`).FindStringSubmatch(o.GetName())
		if o.GetKind() != "ConfigMap" || found == nil {
			continue
		}
		names[o.GetName()] = found[1]
		o.SetName(found[1])
		writeAnew(t, o)
		ids = append(ids, o.id())
	}
	for _, o := range kustomize {
		volumes, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "volumes")
		for _, v := range volumes {
			volume, _ := v.(map[string]any)
			config, is := volume["configMap"].(map[string]any)
			name, _ := config["name"].(string)
			if !is || names[name] == "" {
				continue
			}
			config["name"] = names[name]
			set(t, o, volumes, "spec", "template", "spec", "volumes")
			set(t, o, reads, "spec", "template", "metadata", "annotations", "checksum/config")
		}
	}
	return ids
}

// nameSums does the same for Helm's objects: it writes the same annotation for the checksum of a configuration, and
// rewrites the configurations that kustomize generates.
func nameSums(t *testing.T, helm []object, generated []string) {
	t.Helper()
	annotation := []string{"spec", "template", "metadata", "annotations", "checksum/config"}
	for _, o := range helm {
		if slices.Contains(generated, o.id()) {
			writeAnew(t, o)
		}
		if sum, has, _ := unstructured.NestedString(o.Object, annotation...); has && len(sum) == 64 {
			set(t, o, reads, annotation...)
		}
	}
}

func set(t *testing.T, o object, value any, fields ...string) {
	t.Helper()
	if err := unstructured.SetNestedField(o.Object, value, fields...); err != nil {
		t.Fatal(err)
	}
}

// writeAnew rewrites the files of a ConfigMap in a canonical form.
func writeAnew(t *testing.T, o object) {
	t.Helper()
	files, _, err := unstructured.NestedStringMap(o.Object, "data")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		var content any
		if err := yaml.UnmarshalStrict([]byte(text), &content); err != nil {
			t.Fatal(err)
		}
		anew, err := yaml.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		set(t, o, string(anew), "data", name)
	}
}

func byID(t *testing.T, objects []object) map[string]object {
	t.Helper()
	m := map[string]object{}
	for _, o := range objects {
		if _, twice := m[o.id()]; twice {
			t.Errorf("%s is there twice", o.id())
		}
		m[o.id()] = o
	}
	return m
}

// TestGolden checks that the installed objects are those that were reviewed at their last change.
func TestGolden(t *testing.T) {
	want := map[string][]byte{}
	for _, in := range installs() {
		want[in.name+".kustomize.yaml"] = written(t, kustomized(t, in.folder))
		want[in.name+".helm.yaml"] = written(t, charted(t, in.values, in.schemaless))
	}
	want["local-examples.kustomize.yaml"] = written(t, kustomized(t, examples))
	want["found-disks.kustomize.yaml"] = written(t, kustomized(t, disksFolder))
	want["found-disks-examples.kustomize.yaml"] = written(t, kustomized(t, disksExamples))
	want["recycler.kustomize.yaml"] = written(t, kustomized(t, recyclerFolder))
	want["ebs-examples.kustomize.yaml"] = written(t, kustomized(t, ebsExamples))
	for name, text := range want {
		checkGolden(t, name, text)
	}
	files, err := os.ReadDir("../golden")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if want[file.Name()] == nil {
			t.Errorf("deploy/golden/%s is nobody's golden file: remove it", file.Name())
		}
	}
}

func checkGolden(t *testing.T, name string, text []byte) {
	t.Helper()
	path := filepath.Join("..", "golden", name)
	if updating() {
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	golden, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(golden, text) {
		t.Errorf("deploy/golden/%s is not what is rendered (go test -update writes it anew):\n%s", name,
			diff.Diff(strings.Split(string(golden), "\n"), strings.Split(string(text), "\n")))
	}
}

func written(t *testing.T, objects []object) []byte {
	t.Helper()
	var out bytes.Buffer
	for _, o := range objects {
		text, err := yaml.Marshal(o.Object)
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString("---\n")
		out.Write(text)
	}
	return out.Bytes()
}

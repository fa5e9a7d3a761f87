package tests

import (
	"bytes"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/diff"
	"sigs.k8s.io/yaml"
)

// TestMain adds the flag -update.
func TestMain(m *testing.M) {
	flag.Bool("update", false, "rewrite deploy/golden")
	os.Exit(m.Run())
}

func updating() bool { return flag.Lookup("update").Value.String() == "true" }

// TestSameObjects checks that kustomize and Helm install the same, object by object and field by field.
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

// without leaves out the one object that Helm cannot make itself: the namespace that its release is kept in (helm
// install --create-namespace makes it).
func without(objects []object, id string) []object {
	return slices.DeleteFunc(objects, func(o object) bool { return o.id() == id })
}

func compare(t *testing.T, kustomize, helm []object) {
	t.Helper()
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

// TestGolden checks that what is installed is what was looked at when it was last changed.
func TestGolden(t *testing.T) {
	want := map[string][]byte{}
	for _, in := range installs() {
		want[in.name+".kustomize.yaml"] = written(t, kustomized(t, in.folder))
		want[in.name+".helm.yaml"] = written(t, charted(t, in.values, in.schemaless))
	}
	want["local-examples.kustomize.yaml"] = written(t, kustomized(t, examples))
	want["found-disks.kustomize.yaml"] = written(t, kustomized(t, disksFolder))
	want["found-disks-examples.kustomize.yaml"] = written(t, kustomized(t, disksExamples))
	want["local-volumes.kustomize.yaml"] = written(t, kustomized(t, localVolumesFolder))
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

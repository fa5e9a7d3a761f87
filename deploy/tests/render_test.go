package tests

import (
	"bytes"
	"errors"
	"io"
	"path"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// object is one rendered object.
type object struct{ *unstructured.Unstructured }

// id identifies an object within its render.
func (o object) id() string {
	return strings.TrimPrefix(path.Join(o.GroupVersionKind().Kind, o.GetNamespace(), o.GetName()), "/")
}

// kustomized renders a kustomization; the folder is relative to deploy/.
func kustomized(t *testing.T, folder string) []object {
	t.Helper()
	return kustomizedAt(t, path.Join("..", folder))
}

func kustomizedAt(t *testing.T, folder string) []object {
	t.Helper()
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		t.Fatal(err)
	}
	text, err := resources.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return decoded(t, text)
}

// charted renders the chart with values as `helm install` would in the namespace stowage-system. The schema does not
// contain backends that do not exist yet; schemaless ignores the schema.
func charted(t *testing.T, values map[string]any, schemaless bool) []object {
	t.Helper()
	var all bytes.Buffer
	for name, text := range templated(t, values, schemaless) {
		if path.Ext(name) == ".yaml" {
			all.WriteString("---\n" + text + "\n")
		}
	}
	return decoded(t, all.Bytes())
}

// templated renders the chart to its files.
func templated(t *testing.T, values map[string]any, schemaless bool) map[string]string {
	t.Helper()
	files, err := rendered(values, schemaless)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// rendered renders the chart for the version of Kubernetes in tests/e2e.
func rendered(values map[string]any, schemaless bool) (map[string]string, error) {
	return renderedOn("v1.36.3", values, schemaless)
}

func renderedOn(kubernetes string, values map[string]any, schemaless bool) (map[string]string, error) {
	chart, err := loader.Load("../charts/stowage")
	if err != nil {
		return nil, err
	}
	release := common.ReleaseOptions{Name: "stowage", Namespace: "stowage-system", IsInstall: true, Revision: 1}
	version, err := common.ParseKubeVersion(kubernetes)
	if err != nil {
		return nil, err
	}
	capabilities := common.DefaultCapabilities.Copy()
	capabilities.KubeVersion = *version
	all, err := util.ToRenderValuesWithSchemaValidation(chart, values, release, capabilities, schemaless)
	if err != nil {
		return nil, err
	}
	return engine.Render(chart, all)
}

// decoded splits YAML documents, and sorts the objects by ID.
func decoded(t *testing.T, text []byte) []object {
	t.Helper()
	var list []object
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 1<<20)
	for {
		var content map[string]any
		err := decoder.Decode(&content)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in:\n%s", err, text)
		}
		if len(content) > 0 {
			list = append(list, object{&unstructured.Unstructured{Object: content}})
		}
	}
	slices.SortFunc(list, func(a, b object) int { return strings.Compare(a.id(), b.id()) })
	return list
}

// find returns the object with the ID.
func find(t *testing.T, list []object, id string) object {
	t.Helper()
	i := slices.IndexFunc(list, func(o object) bool { return o.id() == id })
	if i < 0 {
		t.Fatalf("there is no %s", id)
	}
	return list[i]
}

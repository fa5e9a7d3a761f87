package main

import (
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/yaml"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
)

// TestObjectsInPages checks that the objects of Kubernetes in the pages have only fields of their types, in blocks of
// YAML and in documents that a shell block applies.
func TestObjectsInPages(t *testing.T) {
	count := 0
	for _, b := range blocks(t, "yaml") {
		count += checkObjects(t, b.place(0), b.text)
	}
	inPlace := regexp.MustCompile(`(?s)<<'YAML'\n(.*?)\nYAML\n`)
	for _, b := range blocks(t, "sh") {
		for _, found := range inPlace.FindAllStringSubmatch(b.text, -1) {
			count += checkObjects(t, b.place(0), found[1])
		}
	}
	if count == 0 {
		t.Error("no page has an object")
	}
}

// checkObjects checks the documents of a text that are objects, and returns their number.
func checkObjects(t *testing.T, place, text string) (count int) {
	t.Helper()
	for _, document := range strings.Split(text, "\n---\n") {
		var head struct {
			APIVersion string `json:"apiVersion"`
			Kind       string `json:"kind"`
		}
		if err := yaml.Unmarshal([]byte(document), &head); err != nil || head.APIVersion == "" || head.Kind == "" {
			continue // TestYAMLInPages checks that it can be read.
		}
		count++
		object := objectOf(head.APIVersion + " " + head.Kind)
		if object == nil {
			t.Errorf("%s: the test does not know %s of %s: add it", place, head.Kind, head.APIVersion)
		} else if err := yaml.UnmarshalStrict([]byte(document), object); err != nil {
			t.Errorf("%s: %s: %v", place, head.Kind, err)
		}
	}
	return count
}

// objectOf returns an empty object of a type; nil if no page is known to have one.
func objectOf(kind string) any {
	switch kind {
	case "v1 PersistentVolume":
		return new(corev1.PersistentVolume)
	case "v1 PersistentVolumeClaim":
		return new(corev1.PersistentVolumeClaim)
	case "storage.k8s.io/v1 StorageClass":
		return new(storagev1.StorageClass)
	case "storage.k8s.io/v1 CSIDriver":
		return new(storagev1.CSIDriver)
	case "stowage.dev/v1alpha1 PersistentVolumeSet":
		return new(v1alpha1.PersistentVolumeSet)
	}
	return nil
}

package tests

import (
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/yaml"
)

// TestFlags checks that the driver is given flags that it has.
func TestFlags(t *testing.T) {
	source, err := os.ReadFile("../../cmd/driver/options.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range installs() {
		for id, pod := range pods(t, kustomized(t, in.folder)) {
			for _, arg := range container(t, pod, "stowage").Args[1:] {
				flag, _, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
				if !strings.Contains(string(source), `"`+flag+`"`) {
					t.Errorf("%s: the driver has no flag --%s", id, flag)
				}
			}
		}
	}
}

// TestParameters checks that the example classes use parameters that docs/parameters.md has, which is generated from the code.
func TestParameters(t *testing.T) {
	text, err := os.ReadFile("../../docs/parameters.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]string{}
	for section := range strings.SplitSeq(string(text), "\n## ") {
		title, body, _ := strings.Cut(section, "\n")
		sections[title] = body
	}
	for _, o := range slices.Concat(kustomized(t, examples), kustomized(t, nfsExamples), kustomized(t, ebsExamples)) {
		var parameters map[string]string
		var driver string
		switch class := typed(t, o).(type) {
		case *storagev1.StorageClass:
			parameters, driver = class.Parameters, class.Provisioner
		case *storagev1.VolumeAttributesClass:
			parameters, driver = class.Parameters, class.DriverName
		case *snapshotClass:
			parameters, driver = class.Parameters, class.Driver
		}
		kind := strings.Replace(o.GetKind(), "VolumeGroupSnapshotClass", "VolumeSnapshotClass", 1) // They share theirs.
		known := sections[strings.TrimSuffix(driver, ".csi.stowage.dev")+": "+kind] + sections["Every backend: "+kind]
		for key := range parameters {
			if !strings.Contains(known, "| `"+key+"` |") && !strings.Contains(known, "| `"+key+"` (also ") {
				t.Errorf("%s: docs/parameters.md has no %s for a %s", o.id(), key, kind)
			}
		}
	}
}

// TestPools checks that the example classes name pools that the overlay configures.
func TestPools(t *testing.T) {
	config := typed(t, find(t, kustomized(t, installs()[0].folder), "ConfigMap/stowage-system/stowage-local-config")).(*corev1.ConfigMap)
	var content struct {
		Pools []struct {
			Name string `json:"name"`
			Type string `json:"type"`
		} `json:"pools"`
	}
	if err := yaml.UnmarshalStrict([]byte(config.Data["config.yaml"]), &content); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, pool := range content.Pools {
		names = append(names, pool.Name)
	}
	for _, o := range kustomized(t, examples) {
		if class, ok := typed(t, o).(*storagev1.StorageClass); ok && !slices.Contains(names, class.Parameters["pool"]) {
			t.Errorf("%s: there is no pool %q among %q", o.id(), class.Parameters["pool"], names)
		}
	}
}

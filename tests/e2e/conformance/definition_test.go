package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// undeclared returns the capabilities that the suite knows (test/e2e/storage/framework/testdriver.go of Kubernetes
// 1.36) and a definition does not declare, each with the reason.
func undeclared(definition string) map[string]string {
	list := map[string]string{
		"RWX":             "a local volume is on one node: no multi-node access mode is offered",
		"capReadOnlyMany": "a local volume is on one node: no multi-node access mode is offered",
		"volumeMountGroup": "offered with --delegate-fsgroup only, which is off by default: the kubelet " +
			"applies fsGroup",
		"volumeLimits":                   "loop devices have no limit for each node that the driver could report",
		"snapshotMetadata":               "the service that lists changed blocks is not offered",
		"seLinuxMount":                   "CSIDriver.spec.seLinuxMount is false, and there is no SELinux here",
		"FSResizeFromSourceNotSupported": "it says what a driver cannot, and this one can",
	}
	if definition == "directory" {
		delete(list, "FSResizeFromSourceNotSupported")
		list["block"] = "a folder is no device"
		list["groupSnapshot"] = "folders have no instant at which several could be copied"
	}
	return list
}

func declarable() []string {
	return []string{
		"persistence", "block", "fsGroup", "volumeMountGroup", "exec", "snapshotDataSource", "snapshotMetadata",
		"groupSnapshot",
		"pvcDataSource", "multipods", "RWX", "controllerExpansion", "nodeExpansion", "offlineExpansion", "onlineExpansion",
		"volumeLimits", "singleNodeVolume", "topology", "capacity", "FSResizeFromSourceNotSupported", "readWriteOncePod",
		"multiplePVsSameID", "capReadOnlyMany", "seLinuxMount",
	}
}

// content returns a definition as it is written for a run.
func content(t *testing.T, d definition) (file map[string]any, capabilities map[string]any) {
	t.Helper()
	testdata, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	path, err := d.write(testdata, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, &file); err != nil {
		t.Fatal(err)
	}
	driver, _ := file["DriverInfo"].(map[string]any)
	capabilities, ok := driver["Capabilities"].(map[string]any)
	if !ok {
		t.Fatalf("%s: there are no DriverInfo.Capabilities", path)
	}
	return file, capabilities
}

// The suite ignores a misspelt capability, and skips the specs that it should enable.
func TestEveryCapabilityIsDeclaredOrExplained(t *testing.T) {
	for _, d := range definitions() {
		_, capabilities := content(t, d)
		for key := range capabilities {
			if !slices.Contains(declarable(), key) {
				t.Errorf("%s: the suite does not know the capability %q", d.name, key)
			}
		}
		if d.only != "" {
			continue // It declares the capabilities that its specs need.
		}
		reasons := undeclared(d.name)
		for _, key := range declarable() {
			_, declared := capabilities[key]
			if _, explained := reasons[key]; declared == explained {
				t.Errorf("%s: the capability %q is declared: %t, explained: %t; want one", d.name, key, declared, explained)
			}
		}
	}
}

func TestOnlineGrowthFollowsTheMachine(t *testing.T) {
	able, err := mayResize()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range definitions() {
		_, capabilities := content(t, d)
		if want := able || !d.growsExt4; capabilities["onlineExpansion"] != want {
			t.Errorf("%s: onlineExpansion is %v, want %t", d.name, capabilities["onlineExpansion"], want)
		}
	}
}

// The classes are the examples that users apply, and they exist.
func TestDefinitionsNameClassesThatAreThere(t *testing.T) {
	installed := names(t, filepath.Join("..", "..", "..", "deploy", "kubernetes", "examples", "local"))
	for _, d := range definitions() {
		file, _ := content(t, d)
		for key, value := range file {
			class, ok := value.(map[string]any)
			if !ok || !strings.HasSuffix(key, "Class") {
				continue
			}
			if path, ok := class["FromFile"].(string); ok {
				if _, err := os.Stat(path); err != nil {
					t.Errorf("%s: %s: %v", d.name, key, err)
				}
				continue
			}
			if name, _ := class["FromExistingClassName"].(string); !installed[name] {
				t.Errorf("%s: %s %q is not among %v", d.name, key, name, slices.Sorted(maps.Keys(installed)))
			}
		}
	}
}

// names returns the names of all objects in the folder's manifests.
func names(t *testing.T, folder string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for document := range strings.SplitSeq(string(text), "\n---\n") {
			var object struct{ Metadata struct{ Name string } }
			if err := yaml.Unmarshal([]byte(document), &object); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			found[object.Metadata.Name] = true
		}
	}
	return found
}

func TestChoose(t *testing.T) {
	for _, test := range []struct {
		names string
		want  string // the chosen names; empty for an error
	}{
		{"", "image-xfs image-ext4 directory immediate"},
		{"directory,image-xfs", "directory image-xfs"},
		{"none-such", ""},
		{"directory,", ""},
	} {
		chosen, err := choose(definitions(), test.names)
		var got []string
		for _, d := range chosen {
			got = append(got, d.name)
		}
		if (err != nil) != (test.want == "") || strings.Join(got, " ") != test.want {
			t.Errorf("choose(%q) = %v, %v; want %q", test.names, got, err, test.want)
		}
	}
}

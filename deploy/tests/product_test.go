package tests

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	storagev1 "k8s.io/api/storage/v1"
)

// TestFlags checks that driver and manager, and every command of theirs in a pod, get only flags that they have.
func TestFlags(t *testing.T) {
	driver, manager := source(t, "driver/options.go"), managers(t, "main.go")
	commands := map[string]string{"controller": driver, "node": driver, "standalone": driver,
		"disks": source(t, "driver/disks.go"), "version": source(t, "driver/main.go"),
		"master": managers(t, "master.go"), "worker": managers(t, "worker.go"),
		"volume-worker": managers(t, "volumeworker.go")}
	for _, in := range installs() {
		for id, pod := range pods(t, kustomized(t, in.folder)) {
			driverOf(t, id, pod) // Checks that it exists.
			if in.manager && !strings.HasPrefix(id, "DaemonSet/") {
				checkFlags(t, id, manager, container(t, pod, "manager").Args)
			}
			for _, c := range containers(pod) {
				if ours := strings.HasPrefix(c.Image, "stowage:"); !ours || c.Name == "manager" {
					continue
				}
				if commands[c.Args[0]] == "" {
					t.Errorf("%s: %s runs the command %s, which nothing is known of", id, c.Name, c.Args[0])
				}
				checkFlags(t, id, commands[c.Args[0]], c.Args[1:])
			}
		}
	}
}

// TestModesAreNotConverted checks that no sidecar allows the restore of a raw volume's snapshot as a filesystem: by
// default they refuse it.
func TestModesAreNotConverted(t *testing.T) {
	for _, in := range installs() {
		for way, objects := range map[string][]object{"kustomize": kustomized(t, in.folder),
			"helm": charted(t, in.values, in.schemaless)} {
			for id, pod := range pods(t, objects) {
				for _, c := range containers(pod) {
					if slices.ContainsFunc(c.Args, func(arg string) bool { return strings.Contains(arg, "mode-conversion") }) {
						t.Errorf("%s, %s: %s has %q", id, way, c.Name, c.Args)
					}
				}
			}
		}
	}
}

// source reads a file of a program, and the definition of the one flag that is bound elsewhere.
func source(t *testing.T, file string) string {
	t.Helper()
	text := readText(t, "../../cmd/"+file)
	if strings.Contains(text, "files.Bind(") {
		text += readText(t, "../../pkg/openfiles/openfiles.go")
	}
	return text
}

func readText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestAnswersOfSidecars checks that docs/design/014-answers.md describes the installed versions of the sidecars.
func TestAnswersOfSidecars(t *testing.T) {
	page, values := readText(t, "../../docs/design/014-answers.md"), readText(t, "../charts/stowage/values.yaml")
	head := regexp.MustCompile(`(?m)^\| code \|.*$`).FindString(page)
	for _, name := range []string{"csi-provisioner", "csi-attacher", "csi-snapshotter", "csi-resizer"} {
		version := regexp.MustCompile(name + `:v([0-9.]+)`).FindStringSubmatch(values)
		if version == nil || !strings.Contains(head, "| "+name+" "+version[1]+" |") {
			t.Errorf("%s is installed as %q, and the table is of %s: read its source again (pkg/driver/answers_test.go)", name,
				version, head)
		}
	}
}

// managers returns the code that binds the flags of a command of the manager: its file, and the common functions that
// it calls.
func managers(t *testing.T, file string) string {
	t.Helper()
	text := source(t, "manager/"+file)
	common, rest, isCut := strings.Cut(source(t, "manager/process.go"), "// bindRate adds")
	rate, _, isCutAgain := strings.Cut(rest, "\n}\n")
	if !isCut || !isCutAgain || !strings.Contains(text, "o.bind(cmd, ") {
		t.Fatalf("manager/%s does not bind its flags by process.go", file)
	}
	if strings.Contains(text, "o.bindRate(cmd)") {
		return text + common + rate
	}
	return text + common
}

func checkFlags(t *testing.T, id, source string, args []string) {
	t.Helper()
	for _, arg := range args {
		flag, _, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		if !strings.Contains(source, `"`+flag+`"`) {
			t.Errorf("%s: the program has no flag --%s", id, flag)
		}
	}
}

// TestDefinitions checks that Helm creates the same CustomResourceDefinitions as kustomize. Helm requires them in the
// chart.
func TestDefinitions(t *testing.T) {
	folders := map[string]map[string]string{}
	for _, folder := range []string{"../kubernetes/crds", "../charts/stowage/crds"} {
		files, err := filepath.Glob(folder + "/stowage.dev_*.yaml")
		if err != nil {
			t.Fatal(err)
		}
		folders[folder] = map[string]string{}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			folders[folder][filepath.Base(file)] = string(text)
		}
	}
	if len(folders["../kubernetes/crds"]) == 0 || !maps.Equal(folders["../kubernetes/crds"],
		folders["../charts/stowage/crds"]) {
		t.Error("deploy/charts/stowage/crds is not as deploy/kubernetes/crds: run make generate")
	}
	if applied := kustomized(t, "kubernetes/crds"); len(applied) != len(folders["../kubernetes/crds"]) {
		t.Errorf("%d definitions are applied of %d: name all in deploy/kubernetes/crds/kustomization.yaml", len(applied),
			len(folders["../kubernetes/crds"]))
	}
}

// TestParameters checks that the example classes use parameters in docs/parameters.md, which is generated from the
// code.
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
			if !strings.Contains(known, "| `"+key+"` |") && !strings.Contains(known, "| `"+key+"` or ") {
				t.Errorf("%s: docs/parameters.md has no %s for a %s", o.id(), key, kind)
			}
		}
	}
}

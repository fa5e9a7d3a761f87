package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	"sigs.k8s.io/yaml"
)

// folder is the path of this package in the source tree.
const folder = "tests/e2e/conformance"

// definition is a kind of volume that the suite tests.
type definition struct {
	name string // of its file in testdata
	// only is a regular expression that selects specs. If it is empty, all specs run.
	only string
	// growsExt4 is set for filesystems whose online growth needs a capability that the machine may lack.
	growsExt4 bool
}

func definitions() []definition {
	return []definition{
		{name: "image-xfs"},
		{name: "image-ext4", growsExt4: true},
		{name: "directory"},
		{name: "immediate", only: `immediate-binding|volume-modify-stress|volume-lifecycle-performance|volume-deletion-performance`},
	}
}

// choose returns the named definitions, or all if names is empty.
func choose(all []definition, names string) ([]definition, error) {
	if names == "" {
		return all, nil
	}
	var chosen []definition
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(all, func(d definition) bool { return d.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no definition %q in %s/testdata", name, folder)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// write writes the definition's file for this machine into the folder, and returns its path.
func (d definition) write(testdata, into string) (string, error) {
	text, err := os.ReadFile(filepath.Join(testdata, d.name+".yaml"))
	if err != nil {
		return "", err
	}
	var content map[string]any
	if err := yaml.UnmarshalStrict(text, &content); err != nil {
		return "", fmt.Errorf("definition %s: %w", d.name, err)
	}
	if err := d.adapt(content, testdata); err != nil {
		return "", fmt.Errorf("definition %s: %w", d.name, err)
	}
	if text, err = yaml.Marshal(content); err != nil {
		return "", err
	}
	path := filepath.Join(into, "driver.yaml")
	return path, os.WriteFile(path, text, 0o644)
}

// adapt adapts the definition to this machine, and makes file names absolute.
func (d definition) adapt(content map[string]any, testdata string) error {
	if class, ok := content["StorageClass"].(map[string]any); ok {
		if file, ok := class["FromFile"].(string); ok {
			class["FromFile"] = filepath.Join(testdata, file)
		}
	}
	if !d.growsExt4 {
		return nil
	}
	driver, ok := content["DriverInfo"].(map[string]any)
	if !ok {
		return fmt.Errorf("it has no DriverInfo")
	}
	capabilities, ok := driver["Capabilities"].(map[string]any)
	if !ok {
		return fmt.Errorf("it has no DriverInfo.Capabilities")
	}
	able, err := mayResize()
	capabilities["onlineExpansion"] = able
	return err
}

// mayResize reports whether processes on this machine, including the driver, can have CAP_SYS_RESOURCE. Without it, a
// mounted ext4 does not grow (EXT4_IOC_RESIZE_FS).
func mayResize() (bool, error) {
	has, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, unix.CAP_SYS_RESOURCE, 0, 0, 0)
	if err != nil {
		return false, fmt.Errorf("read the capability bounding set: %w", err)
	}
	return has == 1, nil
}

package plants

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Plant is a defect that can be added to the code.
type Plant struct {
	Values map[string]string // the lines before the patch
	// Violation matches the visible effect of the defect.
	Violation *regexp.Regexp

	root  string   // of the module
	patch string   // the absolute path of the file
	files []string // changed by the patch, relative to the module's root
}

// Each calls see for each plant of a folder, in a separate subtest. root is the root of the module.
func Each(t *testing.T, root, folder string, see func(*testing.T, Plant)) {
	t.Helper()
	patches, err := filepath.Glob(filepath.Join(folder, "*.patch"))
	if err != nil || len(patches) == 0 {
		t.Fatalf("there are %d plants in %s: %v", len(patches), folder, err)
	}
	for _, patch := range patches {
		t.Run(strings.TrimSuffix(filepath.Base(patch), ".patch"), func(t *testing.T) {
			see(t, read(t, root, patch))
		})
	}
}

// Builds checks that the defect can still be planted: the patch applies, and the code builds with it.
func (p Plant) Builds(t *testing.T) {
	t.Helper()
	args := []string{"build", "-overlay", p.overlay(t)}
	for _, file := range p.files {
		args = append(args, "./"+filepath.Dir(file))
	}
	run(t, p.root, "go", args...)
}

// Program builds the tests of a package with the defect, and returns the program's path.
func (p Plant) Program(t *testing.T, folder string) string {
	t.Helper()
	overlay := p.overlay(t)
	program := filepath.Join(filepath.Dir(overlay), "planted.test")
	run(t, p.root, "go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", program, "./"+folder)
	return program
}

// read parses the lines before a patch, and the list of files that it changes.
func read(t *testing.T, root, patch string) Plant {
	t.Helper()
	p := Plant{Values: map[string]string{}, root: absolute(t, root), patch: absolute(t, patch)}
	text, err := os.ReadFile(patch)
	if err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(strings.NewReader(string(text))); lines.Scan(); {
		line := lines.Text()
		if file, ok := strings.CutPrefix(line, "diff --git a/"); ok {
			p.files = append(p.files, strings.Fields(file)[0])
		}
		if key, value, ok := strings.Cut(line, ": "); ok && len(p.files) == 0 {
			p.Values[key] = value
		}
	}
	p.Violation, err = regexp.Compile(p.Values["violation"])
	if err != nil || p.Values["violation"] == "" || len(p.files) == 0 {
		t.Fatalf("%s lacks a violation or a patch (%v)", patch, err)
	}
	return p
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func run(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	// As in make test, whatever the environment of these tests, so that the imports are compiled only once.
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, output)
	}
}

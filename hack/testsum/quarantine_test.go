package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestQuarantine excludes a test of one package, but no test of the same name in another.
func TestQuarantine(t *testing.T) {
	for _, tt := range []struct{ name, list, err, out string }{
		{"one package", "a TestX it fails by chance\n", "", "1 passed, 0 failed"},
		{"the other fails", "b TestX it fails by chance\n", "1 tests failed", "a_test.go:5: defect"},
		{"both", "a TestX one\nb TestX two\n", "no test passed", "0 passed"},
		{"not there", "b TestY it fails by chance\n", "the quarantine names TestY of example.org/m/b, and there is none", ""},
		{"a pattern", "b Test.* it fails by chance\n", "want the name of a top-level test", ""},
		{"a part", "b TestX/part it fails by chance\n", "want the name of a top-level test", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, map[string]string{
				"go.mod":      "module example.org/m\n\ngo 1.24\n",
				"list":        tt.list,
				"a/a_test.go": "package a\n\nimport \"testing\"\n\nfunc TestX(t *testing.T) { t.Error(\"defect\") }\n",
				"b/b_test.go": "package b\n\nimport \"testing\"\n\nfunc TestX(t *testing.T) {}\n",
			})
			var out bytes.Buffer
			err := run(t.Context(), options{dir: dir, quarantine: filepath.Join(dir, "list")},
				[]string{"go", "test", "-json", "-count=1", "./..."}, nil, &out)
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) ||
				!strings.Contains(out.String(), tt.out) {
				t.Errorf("got %v and\n%s\nwant %q and %q", err, &out, tt.err, tt.out)
			}
		})
	}
}

// TestPackagesWithoutTests has a package whose TestMain runs none of its tests, and one that passes.
func TestPackagesWithoutTests(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"go.mod": "module example.org/m\n\ngo 1.24\n",
		"a/a_test.go": "package a\n\nimport \"testing\"\n\nfunc TestMain(*testing.M) {}\n\nfunc TestX(t *testing.T) { " +
			"t.Error(\"defect\") }\n",
		"b/b_test.go": "package b\n\nimport \"testing\"\n\nfunc TestX(t *testing.T) {}\n",
		"c/c.go":      "package c\n\nfunc X() int { return 1 }\n",
	})
	var out bytes.Buffer
	err := run(t.Context(), options{dir: dir}, []string{"go", "test", "-json", "-count=1", "./..."}, nil, &out)
	if err == nil || !strings.Contains(out.String(), "example.org/m/a : it passed, and none of its tests ran") {
		t.Errorf("got %v and\n%s", err, &out)
	}
	if err := run(t.Context(), options{dir: dir}, []string{"go", "test", "-json", "-count=1", "-run", "TestX", "./..."},
		nil, &out); err != nil {
		t.Errorf("tests were picked, and it failed: %v", err)
	}
	out.Reset()
	cover := []string{"go", "test", "-json", "-count=1", "-coverpkg=./...", "-coverprofile=" + filepath.Join(dir, "out"),
		"./b", "./c"}
	if err := run(t.Context(), options{dir: dir}, cover, nil, &out); err != nil {
		t.Errorf("a package without tests is covered by others', and it failed: %v\n%s", err, &out)
	}
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestStepsNameEachInterface checks that both descriptions of how to add a backend name each interface that a backend
// can implement.
func TestStepsNameEachInterface(t *testing.T) {
	root := filepath.Join("..", "..")
	guides := map[string]string{"CONTRIBUTING.md": "`NAME`", "pkg/backends/doc.go": `\bNAME\b`}
	files, err := filepath.Glob(filepath.Join(root, "pkg", "backends", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, file := range files {
		declared := regexp.MustCompile(`(?m)^type ([A-Z]\w+) interface \{`)
		for _, found := range declared.FindAllStringSubmatch(read(t, file), -1) {
			if found[1] == "Mountable" { // Package mountoptions implements it.
				continue
			}
			count++
			for guide, form := range guides {
				name := regexp.MustCompile(strings.ReplaceAll(form, "NAME", found[1]))
				if !name.MatchString(read(t, filepath.Join(root, guide))) {
					t.Errorf("%s does not name the interface %s of %s", guide, found[1], file)
				}
			}
		}
	}
	if count < 20 {
		t.Errorf("the contract has %d interfaces, want 20 at least: this test does not find them", count)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

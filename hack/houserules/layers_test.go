package main

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestLayers compares the diagram of the layers in docs/architecture.md with the code: an arrow is an import, and a
// package of the diagram imports no other package of it that no arrows lead to.
func TestLayers(t *testing.T) {
	root := filepath.Join("..", "..")
	arrows := layers(t, filepath.Join(root, "docs", "architecture.md"))
	for from, next := range arrows {
		imported := importsOf(t, filepath.Join(root, from))
		for _, to := range next {
			if !imported[to] {
				t.Errorf("docs/architecture.md has an arrow from %s to %s, and %s does not import it", from, to, from)
			}
		}
		reached := map[string]bool{}
		reach(arrows, from, reached)
		for to := range imported {
			if _, isShown := arrows[to]; isShown && !reached[to] {
				t.Errorf("%s imports %s, and no arrow of docs/architecture.md leads there", from, to)
			}
		}
	}
}

// layers returns the arrows of a page's diagram of the layers, by the folders at which they begin. A folder without
// arrows has an entry, too.
func layers(t *testing.T, page string) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Layers\n")
	_, diagram, _ := strings.Cut(section, "```mermaid\n")
	diagram, _, _ = strings.Cut(diagram, "```")
	folders := map[string]string{} // by the names of the boxes
	arrows := map[string][]string{}
	for _, box := range regexp.MustCompile(`(\w+)\["([^"]+)"\]`).FindAllStringSubmatch(diagram, -1) {
		folders[box[1]] = box[2]
		arrows[box[2]] = nil
	}
	for _, arrow := range regexp.MustCompile(`(?m)^ *(\w+)(?:\[[^\]]*\])? --> (\w+)`).FindAllStringSubmatch(diagram, -1) {
		from := folders[arrow[1]]
		arrows[from] = append(arrows[from], folders[arrow[2]])
	}
	if len(arrows) == 0 {
		t.Fatalf("%s has no diagram of the layers", page)
	}
	return arrows
}

// reach adds the folders that arrows lead to from a folder.
func reach(arrows map[string][]string, from string, reached map[string]bool) {
	for _, to := range arrows[from] {
		if !reached[to] {
			reached[to] = true
			reach(arrows, to, reached)
		}
	}
}

// importsOf returns the folders of this module that a package imports, without its tests.
func importsOf(t *testing.T, folder string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no Go files: %v", folder, err)
	}
	imported := map[string]bool{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range parsed.Imports {
			path := strings.Trim(spec.Path.Value, `"`)
			if inside, isOurs := strings.CutPrefix(path, "github.com/stowage-csi/stowage/"); isOurs {
				imported[inside] = true
			}
		}
	}
	return imported
}

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"regexp"
	"strings"
)

// graph maps the folder of each package of the module to the folders of the packages that it and its tests link.
type graph map[string]map[string]bool

// imports asks go for the graph. It also contains packages that do not compile.
func imports(ctx context.Context) (graph, error) {
	list := exec.CommandContext(ctx, "go", "list", "-e", "-test", "-f",
		`{{if .Module}}{{.Module.Path}} {{.ImportPath}}{{range .Deps}} {{.}}{{end}}{{end}}`, "./...")
	list.Stderr = os.Stderr
	text, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("cannot list what the packages import: %w", err)
	}
	of := graph{}
	for line := range strings.Lines(string(text)) {
		of.add(strings.Fields(line))
	}
	return of, nil
}

// add takes the module's path, a package and the packages that it links. All of these may be variants for tests:
// p_test, p.test, and p followed by [q.test].
func (of graph) add(fields []string) {
	if len(fields) == 0 {
		return
	}
	name := regexp.MustCompile(`(_test|\.test)$`).ReplaceAllString(fields[1], "")
	home := strings.TrimPrefix(name, fields[0]+"/")
	if of[home] == nil {
		of[home] = map[string]bool{home: true}
	}
	for _, linked := range fields[2:] {
		if folder, own := strings.CutPrefix(linked, fields[0]+"/"); own {
			of[home][folder] = true
		}
	}
}

// home returns the folder of the package that a file belongs to, such as one of its testdata; empty if there is none.
func (of graph) home(file string) string {
	for folder := path.Dir(file); folder != "."; folder = path.Dir(folder) {
		if of[folder] != nil {
			return folder
		}
	}
	return ""
}

// linked returns the folders of the packages that the programs and tests of a step link.
func (of graph) linked(s step) map[string]bool {
	all := map[string]bool{}
	for _, pattern := range strings.Fields(s.packages) {
		below, many := strings.CutSuffix(pattern, "/...")
		for home, folders := range of {
			if home != below && (!many || !within(home, below)) {
				continue
			}
			for folder := range folders {
				all[folder] = true
			}
		}
	}
	return all
}

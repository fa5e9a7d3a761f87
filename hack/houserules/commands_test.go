package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestCommandsInPages checks that the targets of make and the files below deploy exist that the code of the
// documentation names.
func TestCommandsInPages(t *testing.T) {
	root := filepath.Join("..", "..")
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	var targets []string
	for _, target := range regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):`).FindAllStringSubmatch(string(makefile), -1) {
		targets = append(targets, target[1])
	}
	file := regexp.MustCompile(`\bdeploy/[A-Za-z0-9._/-]*[A-Za-z0-9]`)
	target := regexp.MustCompile("(?m)(?:^ *`?|&& )make ([a-z][a-z0-9-]*)")
	for place, code := range codeOf(t, root) {
		for _, path := range file.FindAllString(code, -1) {
			if _, err := os.Stat(filepath.Join(root, path)); err != nil {
				t.Errorf("%s names %s: %v", place, path, err)
			}
		}
		for _, found := range target.FindAllStringSubmatch(code, -1) {
			if !slices.Contains(targets, found[1]) {
				t.Errorf("%s names make %s, and the Makefile has no such target", place, found[1])
			}
		}
	}
}

// TestInstallationsSetTheImage checks that the commands and the overlays of an installation say which image it gets: no
// registry has the image that the manifests and the chart name.
func TestInstallationsSetTheImage(t *testing.T) {
	installs := regexp.MustCompile(
		`kubectl apply -k deploy/kubernetes/(overlays/|found-disks|local-volumes|recycler)|helm install|` +
			`resources: \[github\.com/stowage-csi/`)
	sets := regexp.MustCompile(
		`kustomize edit set image stowage=|--set image\.repository=|images: \[\{name: stowage, newName: `)
	count := 0
	for _, page := range markdown(t, filepath.Join("..", "..")) {
		for _, block := range blocksOf(t, page) {
			if !installs.MatchString(block) {
				continue
			}
			count++
			if !sets.MatchString(block) {
				t.Errorf("%s installs without an image of the reader's registry:\n%s", page, block)
			}
		}
	}
	if count == 0 {
		t.Error("no page installs anything")
	}
}

// TestFirstScreen checks that README.md begins with the way to a pod, for each backend of a cluster's storage, and with
// the commands of developers.
func TestFirstScreen(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	const screen = 40 // lines
	lines := strings.SplitAfterN(string(text), "\n", screen+1)
	first := strings.Join(lines[:min(screen, len(lines))], "")
	for _, want := range []string{"--set backend=nfs", "examples/hello/nfs.yaml", "--set backend=ebs",
		"examples/hello/ebs.yaml", "make demo", "make test"} {
		if !strings.Contains(first, want) {
			t.Errorf("the first %d lines of README.md lack %q", screen, want)
		}
	}
}

// codeOf returns the lines of the blocks of all pages, and the code in the sentences of each page, by their places.
func codeOf(t *testing.T, root string) map[string]string {
	t.Helper()
	code := map[string]string{}
	for _, page := range markdown(t, root) {
		code[page] = strings.Join(spansOf(t, page), "\n")
		for _, b := range parts(t, page) {
			for i, line := range strings.Split(b.text, "\n") {
				code[b.place(i)] = line
			}
		}
	}
	return code
}

// blocksOf returns the blocks of code of a page.
func blocksOf(t *testing.T, page string) []string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile("(?s)```.*?```").FindAllString(string(text), -1)
}

// spansOf returns the code in the sentences of a page, with the marks around it.
func spansOf(t *testing.T, page string) []string {
	t.Helper()
	return regexp.MustCompile("`[^`]+`").FindAllString(strings.ReplaceAll(prose(t, page), "\n", " "), -1)
}

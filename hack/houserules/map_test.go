package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// TestPackageMap compares the map in CONTRIBUTING.md with the folders of cmd and pkg.
func TestPackageMap(t *testing.T) {
	root := filepath.Join("..", "..")
	text, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	var mapped, there []string
	for _, line := range regexp.MustCompile(`(?m)^((?:cmd|pkg)/[\w-]+) +\S`).FindAllStringSubmatch(string(text), -1) {
		mapped = append(mapped, line[1])
	}
	for _, folder := range []string{"cmd", "pkg"} {
		entries, err := os.ReadDir(filepath.Join(root, folder))
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			there = append(there, folder+"/"+entry.Name())
		}
	}
	slices.Sort(mapped)
	if !slices.Equal(mapped, there) {
		t.Errorf("the map has %q, want the folders %q", mapped, there)
	}
}

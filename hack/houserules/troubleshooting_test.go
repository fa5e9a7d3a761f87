package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTroubleshooting checks that the program has each error text by which docs/guides/troubleshooting.md is searched.
// An ellipsis in a text stands for a value.
func TestTroubleshooting(t *testing.T) {
	root := filepath.Join("..", "..")
	page, err := os.ReadFile(filepath.Join(root, "docs", "guides", "troubleshooting.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(string(page), -1)
	if len(rows) == 0 {
		t.Fatal("the page has no table of error texts")
	}
	texts := textsOf(t, filepath.Join(root, "cmd"), filepath.Join(root, "pkg"))
	for _, row := range rows {
		var pieces []string
		for piece := range strings.SplitSeq(row[1], "…") {
			pieces = append(pieces, regexp.QuoteMeta(strings.TrimSpace(piece)))
		}
		if !regexp.MustCompile(strings.Join(pieces, ` ?%[.0-9]*[a-z] ?`)).MatchString(texts) {
			t.Errorf("docs/guides/troubleshooting.md has the error text %q, and no program has it", row[1])
		}
	}
}

// textsOf returns the code below some folders, without tests, with each text that is cut into parts in one piece.
func textsOf(t *testing.T, folders ...string) string {
	t.Helper()
	var all strings.Builder
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			code, err := os.ReadFile(path)
			all.Write(code)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	whole := regexp.MustCompile(`"\s*\+\s*"`).ReplaceAllString(all.String(), "")
	return strings.NewReplacer(`\"`, `"`, "%%", "%").Replace(whole)
}

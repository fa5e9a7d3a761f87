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

// TestNamesInGuides checks that the programs have the events, reasons and states in the guides' tables, and the metrics
// in their text.
func TestNamesInGuides(t *testing.T) {
	root := filepath.Join("..", "..")
	pages, err := filepath.Glob(filepath.Join(root, "docs", "guides", "*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("found %q, %v", pages, err)
	}
	texts := textsOf(t, filepath.Join(root, "cmd"), filepath.Join(root, "pkg"))
	series := seriesOf(t, filepath.Join(root, "deploy", "observability"))
	names := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range namesIn(string(text)) {
			names++
			if !strings.Contains(texts, `"`+name+`"`) {
				t.Errorf("%s explains %s, and no program has it", page, name)
			}
		}
		for _, metric := range regexp.MustCompile(`\bstowage_[a-z_]*[a-z]\b`).FindAllString(string(text), -1) {
			if !series[metric] {
				t.Errorf("%s names the metric %s, and nothing exports it", page, metric)
			}
		}
	}
	if names == 0 {
		t.Error("no guide has a table of events")
	}
}

// namesIn returns the names in the first cells of a page's tables of events, reasons and states.
func namesIn(page string) (names []string) {
	table := regexp.MustCompile(`(?m)^\| (?:event|reason|state) \|.*\n\|[-|]+\|\n((?:\|.*\n)+)`)
	for _, rows := range table.FindAllStringSubmatch(page, -1) {
		for row := range strings.Lines(rows[1]) {
			cell, _, _ := strings.Cut(strings.TrimPrefix(row, "|"), "|")
			for _, name := range regexp.MustCompile("`([A-Z][A-Za-z]+)`").FindAllStringSubmatch(cell, -1) {
				names = append(names, name[1])
			}
		}
	}
	return names
}

// seriesOf returns the metrics in the lists of a folder. A histogram counts by its own name, too.
func seriesOf(t *testing.T, folder string) map[string]bool {
	t.Helper()
	series := map[string]bool{}
	for _, list := range []string{"series.txt", "manager-series.txt"} {
		text, err := os.ReadFile(filepath.Join(folder, list))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range regexp.MustCompile(`(?m)^stowage_\w+`).FindAllString(string(text), -1) {
			series[name] = true
			series[strings.TrimSuffix(name, "_bucket")] = true
		}
	}
	return series
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

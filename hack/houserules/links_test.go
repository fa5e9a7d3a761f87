package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestLinks checks that each relative link of the documentation leads to an existing file and heading, and that the
// index lists each page.
func TestLinks(t *testing.T) {
	root := filepath.Join("..", "..")
	var indexed []string
	pages := markdown(t, root)
	for _, page := range pages {
		for _, target := range linksOf(t, page) {
			file, heading, _ := strings.Cut(target, "#")
			path := filepath.Join(filepath.Dir(page), file)
			if file == "" {
				path = page
			}
			switch _, err := os.Stat(path); {
			case err != nil:
				t.Errorf("%s: the link %q leads nowhere", page, target)
			case heading != "" && !slices.Contains(headingsOf(t, path), heading):
				t.Errorf("%s: %s has no heading for the link %q", page, path, target)
			}
			if page == filepath.Join(root, "docs", "README.md") {
				indexed = append(indexed, path)
			}
		}
	}
	for _, page := range pages {
		if strings.HasPrefix(page, filepath.Join(root, "docs")+"/") && filepath.Base(page) != "README.md" &&
			!slices.Contains(indexed, page) {
			t.Errorf("docs/README.md has no link to %s", page)
		}
	}
}

// markdown returns the documentation's pages: those in the root, and all below docs.
func markdown(t *testing.T, root string) (pages []string) {
	t.Helper()
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: found %q, %v", pattern, found, err)
		}
		pages = append(pages, found...)
	}
	return pages
}

// linksOf returns the targets of a page's links, except URLs.
func linksOf(t *testing.T, page string) (targets []string) {
	t.Helper()
	for _, link := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(prose(t, page), -1) {
		if !strings.Contains(link[1], "://") && !strings.HasPrefix(link[1], "mailto:") {
			targets = append(targets, link[1])
		}
	}
	return targets
}

// headingsOf returns the anchors of a page's headings.
func headingsOf(t *testing.T, page string) (anchors []string) {
	t.Helper()
	other := regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
	for _, heading := range regexp.MustCompile(`(?m)^#+ +(.*)$`).FindAllStringSubmatch(prose(t, page), -1) {
		text := other.ReplaceAllString(strings.ToLower(heading[1]), "")
		anchors = append(anchors, strings.ReplaceAll(text, " ", "-"))
	}
	return anchors
}

// prose returns a page without its code.
func prose(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile("(?s)```.*?```").ReplaceAllString(string(text), "")
}

package main

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// proseLimit is the width of documentation, in characters. Code, tables, and lines without a space at which to break
// may be wider.
const proseLimit = 100

// TestProseIsWrapped checks the width of each page, and of the changelog.
func TestProseIsWrapped(t *testing.T) {
	root := filepath.Join("..", "..")
	news, err := filepath.Glob(filepath.Join(root, "changelog", "*", "*.md"))
	if err != nil || len(news) == 0 {
		t.Fatalf("found %q, %v", news, err)
	}
	for _, page := range append(markdown(t, root), news...) {
		for line := range strings.Lines(prose(t, page)) {
			if isTooWide(line) {
				t.Errorf("%s: wrap at %d columns: %s", page, proseLimit, line)
			}
		}
	}
}

// isTooWide reports whether a line must be wrapped: it has a space outside its code at which it can be broken.
func isTooWide(line string) bool {
	line = strings.TrimRight(line, "\n")
	if utf8.RuneCountInString(line) <= proseLimit || strings.HasPrefix(line, "|") {
		return false
	}
	text := regexp.MustCompile("`[^`]*`").ReplaceAllString(line, "code")
	return strings.Contains(strings.TrimLeft(text, " -*0123456789."), " ")
}

func TestIsTooWide(t *testing.T) {
	word := strings.Repeat("x", proseLimit-2)
	for line, want := range map[string]bool{
		word + " x\n":            false,
		word + " xx\n":           true,
		"- `" + word + " x`,\n":  false,
		"| " + word + " | x |\n": false,
	} {
		if got := isTooWide(line); got != want {
			t.Errorf("%q is too wide: %t, want %t", line, got, want)
		}
	}
}

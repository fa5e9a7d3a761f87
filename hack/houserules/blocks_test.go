package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// block is a block of code of a page.
type block struct {
	page     string
	line     int // of the first line of the text
	language string
	text     string
}

// place names a line of the text, counted from 0.
func (b block) place(line int) string { return fmt.Sprintf("%s:%d", b.page, b.line+line) }

// blocks returns the blocks of all pages in a language.
func blocks(t *testing.T, language string) (found []block) {
	t.Helper()
	for _, page := range markdown(t, filepath.Join("..", "..")) {
		for _, b := range parts(t, page) {
			if b.language == language {
				found = append(found, b)
			}
		}
	}
	if len(found) == 0 {
		t.Fatalf("no page has a block of %q", language)
	}
	return found
}

// parts returns the blocks of a page. The indentation of a block in a list is removed.
func parts(t *testing.T, page string) (found []block) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	fence := regexp.MustCompile("^( *)```(.*)$")
	var open *block
	indent := ""
	for number, line := range strings.Split(string(text), "\n") {
		mark := fence.FindStringSubmatch(line)
		switch {
		case mark != nil && open == nil:
			open, indent = &block{page: page, line: number + 2, language: mark[2]}, mark[1]
		case mark != nil:
			found, open = append(found, *open), nil
		case open != nil:
			open.text += strings.TrimPrefix(line, indent) + "\n"
		}
	}
	if open != nil {
		t.Errorf("%s: a block of code begins, and does not end", open.place(-1))
	}
	return found
}

// TestLanguages checks that each block says which language it has, so that the other tests find it.
func TestLanguages(t *testing.T) {
	for _, page := range markdown(t, filepath.Join("..", "..")) {
		for _, b := range parts(t, page) {
			if !slices.Contains([]string{"", "sh", "yaml", "mermaid"}, b.language) {
				t.Errorf("%s: the language %q is not known: use sh, yaml, mermaid, or none for other text", b.place(-1),
					b.language)
			}
		}
	}
}

// TestYAMLInPages checks that each block of YAML can be read, and has no key twice. The chart's values must be keys of
// its schema, too.
func TestYAMLInPages(t *testing.T) {
	var schema map[string]any
	text, err := os.ReadFile(filepath.Join("..", "..", "deploy", "charts", "stowage", "values.schema.json"))
	if err == nil {
		err = yaml.Unmarshal(text, &schema)
	}
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, b := range blocks(t, "yaml") {
		var value map[string]any
		if err := yaml.Unmarshal([]byte(b.text), &value); err != nil {
			t.Errorf("%s: %v (lines count from there)", b.place(0), err)
			continue
		}
		if !strings.HasPrefix(b.text, "# values.yaml") {
			continue
		}
		count++
		for _, key := range unknownKeys("", value, schema) {
			t.Errorf("%s: the chart has no value %s", b.place(0), key)
		}
	}
	if count == 0 {
		t.Error("no page shows values of the chart")
	}
}

// unknownKeys returns the keys that a schema does not have, where it lists its keys.
func unknownKeys(prefix string, value any, schema map[string]any) (unknown []string) {
	mapping, isMapping := value.(map[string]any)
	properties, lists := schema["properties"].(map[string]any)
	if !isMapping || !lists {
		return nil
	}
	for key, inner := range mapping {
		property, known := properties[key].(map[string]any)
		if !known {
			unknown = append(unknown, prefix+key)
			continue
		}
		unknown = append(unknown, unknownKeys(prefix+key+".", inner, property)...)
	}
	return unknown
}

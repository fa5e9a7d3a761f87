package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stowage-csi/stowage/tests/orchestrator"
)

// TestLists creates enough volumes for a list of several pages.
func TestLists(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("NOT RUN: mounting needs root")
	}
	binary := filepath.Join(t.TempDir(), "stowage")
	if err := orchestrator.Build(t.Context(), binary); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := run(t.Context(), binary, 2500, &out); err != nil {
		t.Fatal(err)
	}
	t.Log(out.String())
	if lines := strings.Count(out.String(), "MiB"); lines != 5 {
		t.Errorf("want 5 figures of memory:\n%s", out.String())
	}
}

func TestCompare(t *testing.T) {
	for name, seen := range map[string]map[string]int{
		"lacks one":    {"a": 1},
		"has one more": {"a": 1, "b": 1, "c": 1},
		"has it twice": {"a": 1, "b": 2},
	} {
		if compare(seen, []string{"a", "b"}) == nil {
			t.Errorf("a list that %s is taken for right", name)
		}
	}
	if err := compare(map[string]int{"a": 1, "b": 1}, []string{"a", "b"}); err != nil {
		t.Error(err)
	}
}

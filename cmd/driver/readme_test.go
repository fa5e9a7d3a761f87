package main

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestFlagsInREADME compares the table of flags in README.md with the flags of the commands that serve, and with their
// defaults.
func TestFlagsInREADME(t *testing.T) {
	t.Setenv("CSI_ENDPOINT", "") // The environment sets the default of --endpoint.
	text, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "### Flags of `stowage standalone`")
	if !found {
		t.Fatal("README.md has no section about the flags of stowage standalone")
	}
	section, _, _ = strings.Cut(section, "\n### ")
	shown := map[string]string{} // the defaults, by the names of the flags
	for _, row := range regexp.MustCompile("(?m)^\\| `-+([a-z-]+)` \\| ([^|]+) \\|").FindAllStringSubmatch(section, -1) {
		shown[row[1]] = row[2]
	}
	has := map[string]bool{}
	for _, cmd := range command().Commands() {
		if !slices.Contains([]string{string(both), string(onlyController), string(onlyNode)}, cmd.Name()) {
			continue
		}
		usages := cmd.Flags().FlagUsages()
		for _, flag := range regexp.MustCompile(`(?m)^ +(?:-\w, )?--([a-z-]+)`).FindAllStringSubmatch(usages, -1) {
			name := flag[1]
			has[name] = true
			if got, want := shown[name], cmd.Flags().Lookup(name).DefValue; !showsDefault(got, want) {
				t.Errorf("README.md shows the default of --%s as %q, and stowage %s has %q", name, got, cmd.Name(), want)
			}
		}
	}
	if got, want := slices.Sorted(maps.Keys(shown)), slices.Sorted(maps.Keys(has)); !slices.Equal(got, want) {
		t.Errorf("README.md lists the flags %q, want %q", got, want)
	}
}

// showsDefault reports whether a cell of the table describes a flag's default: as code, or in words if it is empty.
func showsDefault(cell, value string) bool {
	switch value {
	case "", "[]": // no text, no entries
		return cell != "" && !strings.HasPrefix(cell, "`")
	case "false":
		return cell == "off"
	default:
		return strings.Contains(cell, "`"+value+"`")
	}
}

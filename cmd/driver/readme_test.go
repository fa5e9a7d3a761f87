package main

import (
	"cmp"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/stowage-csi/stowage/pkg/backends/all"
)

// TestFlagsInREADME compares the table of flags in README.md with the flags of the commands that serve, with their
// defaults, and with the words about the defaults in the help.
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
	served := map[string]map[string]*pflag.Flag{} // by the names of the flag and of the command
	for _, cmd := range command().Commands() {
		if !slices.Contains([]string{string(both), string(onlyController), string(onlyNode)}, cmd.Name()) {
			continue
		}
		usages := cmd.Flags().FlagUsages()
		for _, flag := range regexp.MustCompile(`(?m)^ +(?:-\w, )?--([a-z-]+)`).FindAllStringSubmatch(usages, -1) {
			if served[flag[1]] == nil {
				served[flag[1]] = map[string]*pflag.Flag{}
			}
			served[flag[1]][cmd.Name()] = cmd.Flags().Lookup(flag[1])
		}
	}
	for name, flags := range served {
		if got, want := shown[name], defaultsCell(flags); got != want {
			t.Errorf("README.md shows the default of --%s as %q, and the flag has %q", name, got, want)
		}
	}
	if got, want := slices.Sorted(maps.Keys(shown)), slices.Sorted(maps.Keys(served)); !slices.Equal(got, want) {
		t.Errorf("README.md lists the flags %q, want %q", got, want)
	}
}

// defaultsCell returns the table's cell with the default of a flag, which may be another for stowage standalone. flags
// has the flag of each command.
func defaultsCell(flags map[string]*pflag.Flag) string {
	var cells []string
	for _, flag := range flags {
		cells = append(cells, defaultCell(flag))
	}
	slices.Sort(cells)
	if cells = slices.Compact(cells); len(cells) == 1 {
		return cells[0]
	}
	alone := defaultCell(flags[string(both)])
	others := slices.DeleteFunc(cells, func(cell string) bool { return cell == alone })
	return alone + " for `" + string(both) + "`, else " + strings.Join(others, " or ")
}

// defaultCell returns the table's cell with a default: as code unless it is empty, and with the words that the help has
// for it.
func defaultCell(flag *pflag.Flag) string {
	_, words, _ := strings.Cut(strings.TrimSuffix(flag.Usage, ")"), "(default: ")
	names := regexp.MustCompile(`\b(` + strings.Join(all.Registry().Names(), "|") + `)\b`)
	words = names.ReplaceAllString(words, "`$1`")
	switch flag.DefValue {
	case "", "[]": // no text, no entries
		return cmp.Or(words, "none")
	case "false":
		return cmp.Or(words, "off")
	}
	cell := "`" + flag.DefValue + "`"
	if words != "" {
		cell += ", " + words
	}
	return cell
}

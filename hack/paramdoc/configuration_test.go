package main

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends/all"
	"github.com/stowage-csi/stowage/pkg/disks/discovery"
	"github.com/stowage-csi/stowage/pkg/strictyaml"
)

// TestConfigurationPage checks that docs/configuration.md lists exactly the keys of each configuration, and that each
// of its examples can be read.
func TestConfigurationPage(t *testing.T) {
	page := configurationPage(t)
	configs := map[string]any{"Found disks": &discovery.Config{}}
	for _, definition := range all.Registry() {
		if definition.NewConfig != nil {
			configs[definition.Name] = definition.NewConfig()
		}
	}
	for title, config := range configs {
		got, want := keysShown(page[title]), keysOf("", reflect.TypeOf(config).Elem())
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("docs/configuration.md lists the keys %q under %q, want %q", got, title, want)
		}
		_, example, found := strings.Cut(page[title], "```yaml\n")
		example, _, _ = strings.Cut(example, "```")
		if err := strictyaml.Unmarshal([]byte(example), config); err != nil || !found {
			t.Errorf("docs/configuration.md has an example under %q: %t: %v", title, found, err)
		}
	}
	for title := range page {
		if configs[title] == nil {
			t.Errorf("docs/configuration.md has a section %q, and nothing of that name has a configuration", title)
		}
	}
}

// configurationPage returns the sections of the page by their titles.
func configurationPage(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	page := map[string]string{}
	for _, section := range strings.Split(string(text), "\n## ")[1:] {
		title, body, _ := strings.Cut(section, "\n")
		page[title] = body
	}
	return page
}

// keysShown returns the keys in a section's table, sorted.
func keysShown(section string) (keys []string) {
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(section, -1) {
		keys = append(keys, row[1])
	}
	slices.Sort(keys)
	return keys
}

// keysOf returns the keys of a configuration: pools[].name is a key of each entry of the list pools, and rates.*.burst
// is one of each value of the map rates.
func keysOf(prefix string, config reflect.Type) (keys []string) {
	for i := range config.NumField() {
		field := config.Field(i)
		key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if key == "" || key == "-" { // It cannot be set in a file.
			continue
		}
		keys = append(keys, prefix+key)
		value, between := field.Type, "."
		if value.Kind() == reflect.Slice {
			value, between = value.Elem(), "[]."
		} else if value.Kind() == reflect.Map {
			value, between = value.Elem(), ".*."
		}
		if value.Kind() == reflect.Struct {
			keys = append(keys, keysOf(prefix+key+between, value)...)
		}
	}
	return keys
}

package all_test

import (
	"regexp"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends/all"
)

func TestRegistry(t *testing.T) {
	registry := all.Registry()
	seen := map[string]bool{}
	for _, d := range registry {
		if d.Summary == "" || d.NewParameters == nil || d.Open == nil {
			t.Errorf("the definition of %q is not whole: %+v", d.Name, d)
		}
		if seen[d.Name] || !regexp.MustCompile(`^[a-z][a-z0-9-]*$`).MatchString(d.Name) {
			t.Errorf("the backend %q has the name of another one, or a name that cannot be a part of a driver's name", d.Name)
		}
		seen[d.Name] = true
	}
	if len(registry) == 0 {
		t.Fatal("there is no backend")
	}
	name := registry[0].Name
	registry[0].Name = "scribbled"
	if all.Registry()[0].Name != name {
		t.Error("a change to one registry is seen in the next one")
	}
}

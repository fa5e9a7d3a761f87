package all_test

import (
	"slices"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends/all"
)

func TestRegistry(t *testing.T) {
	registry := all.Registry()
	if names := registry.Names(); !slices.Equal(names, []string{"local", "memory", "nfs", "ebs"}) {
		t.Errorf("the backends are %q, want local, memory, nfs and ebs", names)
	}
	for _, d := range registry {
		if d.Summary == "" || d.NewParameters == nil || d.Open == nil {
			t.Errorf("the definition of %q is not whole: %+v", d.Name, d)
		}
	}
	registry[0].Name = "scribbled"
	if all.Registry()[0].Name != "local" {
		t.Error("a change to one registry is seen in the next one")
	}
}

package backends_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
)

func TestRegistry(t *testing.T) {
	r := backends.Registry{{Name: "local", Summary: "disks"}, {Name: "memory"}}
	if names := r.Names(); !slices.Equal(names, []string{"local", "memory"}) {
		t.Errorf("the names are %q, want those given, in their order", names)
	}
	if d, err := r.Lookup("local"); err != nil || d.Summary != "disks" {
		t.Errorf("looking up a name: got %+v, %v", d, err)
	}
	for _, name := range []string{"", "Local", "locals", "nfs"} {
		_, err := r.Lookup(name)
		want := fmt.Sprintf("there is no backend %q: use local or memory", name)
		if !backends.Is(err, backends.Invalid) || err.Error() != want {
			t.Errorf("looking up %q: got %v, want Invalid: %s", name, err, want)
		}
	}
}

package tests

import (
	"maps"
	"strings"
	"testing"
)

// TestBackendDecides checks that the backend alone results in a working installation, that a value which agrees with it
// is accepted, and that the error for a contradicting value names it.
func TestBackendDecides(t *testing.T) {
	attach, capacity, host := "csiDriver.attachRequired", "csiDriver.storageCapacity", "node.hostNetwork"
	for backend, works := range map[string]map[string][]bool{
		"local": {attach: {false}, capacity: {true}, host: {false}},
		"nfs":   {attach: {false}, capacity: {false}, host: {true}},
		"ebs":   {attach: {true}, capacity: {false}, host: {false, true}},
	} {
		for name, allowed := range works {
			for _, given := range []bool{false, true} {
				parent, child, _ := strings.Cut(name, ".")
				values := map[string]any{"backend": backend, parent: map[string]any{child: given}}
				_, err := rendered(maps.Clone(values), false)
				if right := allowed[0] == given || len(allowed) == 2; right != (err == nil) || err != nil &&
					!strings.Contains(err.Error(), name+" is ") {
					t.Errorf("%v: %v", values, err)
				}
			}
		}
	}
}

package local

import (
	"context"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// TestNothingIsGoneWhileItIsMade checks that no deletion succeeds for an item that appears a moment later.
func TestNothingIsGoneWhileItIsMade(t *testing.T) {
	f := newFixture(t, PoolConfig{Name: "one", Type: "directory", SharesDisk: true})
	for what, c := range map[string]struct {
		prefix  string
		reserve func(handle string) error
		delete  func(ctx context.Context, handle string) error
	}{
		"volume":   {volumePrefix, f.stock.volumes.reserve, f.Delete},
		"snapshot": {snapshotPrefix, f.stock.snapshots.reserve, f.DeleteSnapshot},
		"group":    {groupPrefix, f.stock.groups.reserve, f.DeleteGroup},
	} {
		handle := handleOf(c.prefix, "w")
		if err := c.reserve(handle); err != nil {
			t.Fatal(err)
		}
		if err := c.delete(t.Context(), handle); !backends.Is(err, backends.Busy) {
			t.Errorf("the %s is being made, and its deletion says %v", what, err)
		}
	}
}

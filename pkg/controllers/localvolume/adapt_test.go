package localvolume

import (
	"testing"

	"k8s.io/utils/ptr"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/local"
	"github.com/stowage-csi/stowage/pkg/controllers/csiclient/csiclienttest"
)

// TestRefusedChangeStopsNoOther checks that a volume which could not grow can be modified, that one which could not be
// modified can grow, and that what was refused is not done later on.
func TestRefusedChangeStopsNoOther(t *testing.T) {
	inCalm(t, func(c *calm) {
		c.start("node-0")
		v, err := c.create(c.masters[0], wanted("volume", "node-0"))
		if err != nil {
			t.Fatal(err)
		}
		service, n := edge(c.masters[0]), c.nodes["node-0"]
		size := backends.CapacityRange{RequiredBytes: 1000 * mib}
		if _, err := service.Expand(c.ctx, v.Handle, size); !backends.Is(err, backends.Exhausted) {
			t.Errorf("there is no room, and an expansion says %v", err)
		}
		if err := service.Modify(c.ctx, v.Handle, &local.Mutable{ReadAheadKiB: ptr.To(7)}); err != nil {
			t.Errorf("after that it cannot be modified: %v", err)
		}
		n.refusesChange = csiclienttest.Invalid()
		change := &local.Mutable{ReadAheadKiB: ptr.To(8), OnDelete: ptr.To("retain")}
		if err := service.Modify(c.ctx, v.Handle, change); !backends.Is(err, backends.Invalid) {
			t.Errorf("the driver refuses, and a modification says %v", err)
		}
		n.refusesChange = nil
		size.RequiredBytes = 2 * mib
		if grown, err := service.Expand(c.ctx, v.Handle, size); err != nil || grown.CapacityBytes != 2*mib {
			t.Errorf("after that it grows to %d bytes: %v", grown.CapacityBytes, err)
		}
		if have := n.volumes[v.Handle].mutable; len(have) != 1 || have["readAheadKiB"] != "7" {
			t.Errorf("the volume has the parameters %v, want the read-ahead of 7 KiB that was taken", have)
		}
	})
}

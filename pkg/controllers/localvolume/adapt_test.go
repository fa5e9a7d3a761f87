package localvolume

import (
	"errors"
	"testing"

	"k8s.io/utils/ptr"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/local"
	"github.com/stowage-csi/stowage/pkg/controllers/csiclient/csiclienttest"
)

// TestRefusedChangeStopsNoOther checks that a volume can be modified after a failed expansion and grow after a failed
// modification, and that a refused change is not made later.
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
		n.refuse(nil, csiclienttest.Invalid())
		change := &local.Mutable{ReadAheadKiB: ptr.To(8), OnDelete: ptr.To("retain")}
		if err := service.Modify(c.ctx, v.Handle, change); !backends.Is(err, backends.Invalid) {
			t.Errorf("the driver refuses, and a modification says %v", err)
		}
		n.refuse(nil, nil)
		size.RequiredBytes = 2 * mib
		if grown, err := service.Expand(c.ctx, v.Handle, size); err != nil || grown.CapacityBytes != 2*mib {
			t.Errorf("after that it grows to %d bytes: %v", grown.CapacityBytes, err)
		}
		if have := n.mutable(v.Handle); len(have) != 1 || have["readAheadKiB"] != "7" {
			t.Errorf("the volume has the parameters %v, want the read-ahead of 7 KiB that was taken", have)
		}
	})
}

// TestGrowthGivesNoParameters checks that an expansion does not pass mutable parameters that it does not change, even
// if a worker has invented them.
func TestGrowthGivesNoParameters(t *testing.T) {
	inCalm(t, func(c *calm) {
		c.start("node-0")
		v, err := c.create(c.masters[0], wanted("volume", "node-0"))
		if err != nil {
			t.Fatal(err)
		}
		service := edge(c.masters[0])
		if err := service.Modify(c.ctx, v.Handle, &local.Mutable{ReadAheadKiB: ptr.To(7)}); err != nil {
			t.Fatal(err)
		}
		o := c.object()
		o.Status.MutableParameters = map[string]string{"ofALaterVersion": "x"}
		if err := c.api.Status().Update(c.ctx, o); err != nil {
			t.Fatal(err)
		}
		c.nodes["node-0"].refuse(nil, csiclienttest.Invalid())
		if _, err := service.Expand(c.ctx, v.Handle, backends.CapacityRange{RequiredBytes: 2 * mib}); err != nil {
			t.Errorf("nothing but the size changes, and the expansion says %v", err)
		}
	})
}

// TestVolumeMadeAnewIsModified checks that the driver gets mutable parameters even if the object was created again with
// them after it was removed by force: the volume may have others.
func TestVolumeMadeAnewIsModified(t *testing.T) {
	inCalm(t, func(c *calm) {
		c.start("node-0")
		spec := wanted("volume", "node-0")
		spec.Mutable = &local.Mutable{OnDelete: ptr.To("retain")}
		service := edge(c.masters[0])
		v, err := c.create(c.masters[0], spec)
		if err != nil {
			t.Fatal(err)
		}
		if err := service.Modify(c.ctx, v.Handle, &local.Mutable{OnDelete: ptr.To("delete")}); err != nil {
			t.Fatal(err)
		}
		o := c.object()
		o.Finalizers = nil
		if err := errors.Join(c.api.Update(c.ctx, o), c.api.Delete(c.ctx, o)); err != nil {
			t.Fatal(err)
		}
		if _, err = c.create(c.masters[0], spec); err != nil {
			t.Fatal(err)
		}
		if err := service.Modify(c.ctx, v.Handle, spec.Mutable); err != nil {
			t.Fatal(err)
		}
		if have := c.nodes["node-0"].mutable(v.Handle)["onDelete"]; have != "retain" {
			t.Errorf("retain was acknowledged, and the driver has %q", have)
		}
	})
}

package localvolume

import (
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// TestSizeIsTheNodes checks that the size of a volume of any size is left to the node's driver, as without a master.
// The claim did not ask for the least size of the filesystem. A volume with a required size has room for that.
func TestSizeIsTheNodes(t *testing.T) {
	for name, test := range map[string]struct {
		size backends.CapacityRange
		want int64 // 0 if it is OutOfRange
	}{
		"of any size":             {backends.CapacityRange{}, usual},
		"of any size, limited":    {backends.CapacityRange{LimitBytes: 8 * mib}, usual},
		"smaller than it can be":  {backends.CapacityRange{RequiredBytes: mib}, 2 * mib},
		"larger":                  {backends.CapacityRange{RequiredBytes: 3 * mib}, 3 * mib},
		"limited to what is less": {backends.CapacityRange{LimitBytes: mib}, 0},
	} {
		inCalm(t, func(c *calm) {
			c.start("node-0")
			spec := wanted("volume", "node-0")
			spec.Capacity, spec.LeastDeviceBytes = test.size, 2*mib
			switch v, err := c.create(c.masters[0], spec); {
			case test.want == 0:
				if !backends.Is(err, backends.OutOfRange) {
					c.Errorf("%s: the volume is %+v, %v; want OutOfRange", name, v, err)
				}
			case err != nil || v.CapacityBytes != test.want:
				c.Errorf("%s: the volume is %+v, %v; want one of %d bytes", name, v, err, test.want)
			}
		})
	}
}

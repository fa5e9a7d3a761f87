package memory_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/backendtest"
	"github.com/stowage-csi/stowage/pkg/backends/memory"
)

func TestConformance(t *testing.T) {
	h := backendtest.Over(memory.Definition(), func(_ testing.TB, o *backends.Options) {
		*o.Config.(*memory.Config) = memory.Config{CapacityBytes: 1 << 32, MaxVolumesPerNode: 3, Nodes: []string{"node-b"},
			Zone: "here"}
	})
	h.Reopen = nil // State in memory is lost with the process.
	h.Reserves = true
	h.Nodes = []string{"node-a", "node-b"}
	h.Spec = spec
	h.Damage = func(tb testing.TB, instance *backends.Instance, handle string) {
		if err := os.RemoveAll(filepath.Dir(device(tb, instance, handle).Path)); err != nil {
			tb.Fatal(err)
		}
	}
	for _, kib := range []int{128, 0, 4096} {
		h.Modifications = append(h.Modifications, backendtest.Modification{
			Value: &memory.Mutable{ReadAheadKiB: &kib},
			Seen: func(tb testing.TB, instance *backends.Instance, handle string) bool {
				return device(tb, instance, handle).ReadAheadKiB == kib
			},
		})
	}
	backendtest.Run(t, h)
}

func spec(name string) backends.Spec {
	return backends.Spec{
		Name:       name,
		Capacity:   backends.CapacityRange{RequiredBytes: 8 << 20},
		Parameters: &memory.Parameters{Tier: "cold"},
		Access: backends.Access{
			Types: []backends.AccessType{backends.Mount, backends.Block},
			Modes: []backends.AccessMode{backends.SingleNodeWriter, backends.MultiNodeMultiWriter},
		},
	}
}

// device returns the volume's source as a block device.
func device(tb testing.TB, instance *backends.Instance, handle string) backends.Device {
	tb.Helper()
	source, err := instance.Node.Source(tb.Context(), backends.Attachment{Handle: handle, Type: backends.Block})
	if err != nil {
		tb.Fatal(err)
	}
	return source.(backends.Device)
}

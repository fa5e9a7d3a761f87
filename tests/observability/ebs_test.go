package observability

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/ebs"
	"github.com/stowage-csi/stowage/pkg/node/ledger"
	"github.com/stowage-csi/stowage/tests/cloud/faults"
	"github.com/stowage-csi/stowage/tests/cloud/region"
	"github.com/stowage-csi/stowage/tests/inprocess"
)

// exerciseEBS creates a volume while EC2 throttles and fails, on a node that has staged another one, and returns the
// metrics of the driver.
func exerciseEBS(t *testing.T) *prometheus.Registry {
	t.Helper()
	r := region.New(t, region.Quick(), 0)
	r.Proxy.Script(faults.Rule{Action: "CreateVolume", Times: 1, Kind: faults.Throttle},
		faults.Rule{Action: "DescribeVolumes", Times: 1, Kind: faults.Fail})
	definition := ebs.Definition()
	open := definition.Open
	definition.Open = func(ctx context.Context, o backends.Options) (*backends.Instance, error) {
		r.Configure(&o)
		o.Config.(*ebs.Config).LogPage = func(string, string) ([]byte, error) {
			return append([]byte{0x10, 0xB5, 0x23, 0x3C}, make([]byte, 4092)...), nil
		}
		return open(ctx, o)
	}
	data := t.TempDir()
	stage(t, filepath.Join(data, "node"), "vol-0123456789abcdef0")
	driver := inprocess.Start(t, inprocess.Options{Backend: "ebs", Definition: &definition, NodeID: region.NodeA,
		DataDir: data})
	_, err := csi.NewControllerClient(driver.Conn).CreateVolume(t.Context(), &csi.CreateVolumeRequest{
		Name: "series", CapacityRange: &csi.CapacityRange{RequiredBytes: 1 << 30},
		VolumeCapabilities: []*csi.VolumeCapability{{
			AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
			AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return driver.Metrics.Registry
}

// stage records a volume as staged from a disk.
func stage(t *testing.T, state, volume string) {
	t.Helper()
	boot, err := ledger.BootID()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(state, 0o700); err != nil {
		t.Fatal(err)
	}
	records, _, err := ledger.Open(t.Context(), state, boot, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := records.Put(ledger.Record{Volume: volume, Staged: &ledger.Staging{Path: filepath.Join(state, "nowhere"),
		Source: ledger.Source{Kind: ledger.Device, Path: "/dev/nvme1n1", DevicePath: "/dev/nvme1n1"}}}); err != nil {
		t.Fatal(err)
	}
}

package observability

import (
	"context"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/ebs"
	"github.com/stowage-csi/stowage/tests/cloud/faults"
	"github.com/stowage-csi/stowage/tests/cloud/region"
	"github.com/stowage-csi/stowage/tests/inprocess"
)

// exerciseEBS creates a volume while EC2 throttles and fails, and returns the metrics of the driver.
func exerciseEBS(t *testing.T) *prometheus.Registry {
	t.Helper()
	r := region.New(t, region.Quick(), 0)
	r.Proxy.Script(faults.Rule{Action: "CreateVolume", Times: 1, Kind: faults.Throttle},
		faults.Rule{Action: "DescribeVolumes", Times: 1, Kind: faults.Fail})
	definition := ebs.Definition()
	open := definition.Open
	definition.Open = func(ctx context.Context, o backends.Options) (*backends.Instance, error) {
		r.Configure(&o)
		return open(ctx, o)
	}
	driver := inprocess.Start(t, inprocess.Options{Backend: "ebs", Definition: &definition, NodeID: region.NodeA})
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

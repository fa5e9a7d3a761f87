package driver_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/stowage-csi/stowage/pkg/driver"
	"github.com/stowage-csi/stowage/tests/inprocess"
	"github.com/stowage-csi/stowage/tests/localpools"
)

// The staging of a volume for a group is counted, with a call through the whole driver.
func TestOwnershipIsMeasured(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("NOT RUN: mounts need root")
	}
	d := inprocess.Start(t, inprocess.Options{Backend: "local", Config: localpools.YAML, DelegateFSGroup: true})
	capability := &csi.VolumeCapability{
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{VolumeMountGroup: "4711"}},
	}
	controller, node := csi.NewControllerClient(d.Conn), csi.NewNodeClient(d.Conn)
	created, err := controller.CreateVolume(t.Context(), &csi.CreateVolumeRequest{
		Name: "v", VolumeCapabilities: []*csi.VolumeCapability{capability},
		Parameters: map[string]string{"pool": "directory"},
	})
	if err != nil {
		t.Fatal(err)
	}
	volume, staging := created.GetVolume(), filepath.Join(t.TempDir(), "staging")
	if err := os.Mkdir(staging, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := node.NodeStageVolume(t.Context(), &csi.NodeStageVolumeRequest{
		VolumeId: volume.GetVolumeId(), VolumeContext: volume.GetVolumeContext(), StagingTargetPath: staging,
		VolumeCapability: capability,
	}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if _, err := node.NodeUnstageVolume(t.Context(),
			&csi.NodeUnstageVolumeRequest{VolumeId: volume.GetVolumeId(), StagingTargetPath: staging}); err != nil {
			t.Error(err)
		}
	}()
	exported := metricsOf(t, d.Metrics)
	for _, line := range []string{
		`stowage_node_ownership_walks_in_progress{driver="local.csi.stowage.dev"} 0`,
		`stowage_node_ownership_entries_total{driver="local.csi.stowage.dev",result="changed"} 1`, // an empty volume's root
		`stowage_node_ownership_entries_total{driver="local.csi.stowage.dev",result="unchanged"} 0`,
		`stowage_node_ownership_entries_total{driver="local.csi.stowage.dev",result="denied"} 0`,
		`stowage_node_ownership_walk_duration_seconds_count{driver="local.csi.stowage.dev",outcome="complete"} 1`,
	} {
		if !strings.Contains(exported, "\n"+line+"\n") {
			t.Errorf("/metrics lacks the line %s", line)
		}
	}
	if strings.Contains(exported, volume.GetVolumeId()) {
		t.Error("/metrics names a volume")
	}
}

// metricsOf returns the answer of /metrics.
func metricsOf(t *testing.T, metrics *driver.Metrics) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- driver.ServeHTTP(ctx, listener, metrics) }()
	defer func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+listener.Addr().String()+"/metrics",
		nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

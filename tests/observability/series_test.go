package observability

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/tests/inprocess"
)

// list is the checked file.
const list = "../../deploy/observability/series.txt"

// header describes the file.
const header = `# What the driver exports at /metrics, written by go test ./tests/observability -update: each time series with its labels, and
# then the values that a label can have. Most metrics of the process and all of the Go runtime are left out.
`

// update rewrites the list.
var update = flag.Bool("update", false, "rewrite deploy/observability/series.txt")

func TestSeries(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("NOT RUN: mounts need root")
	}
	driver := inprocess.Start(t, inprocess.Options{
		Backend: "local", DelegateFSGroup: true, Config: "pools: [{name: directory, type: directory}]",
	})
	// Series with labels are exported after their first use.
	exercise(t, driver)
	lines := append(series(t, driver.Metrics.Registry), series(t, exerciseEBS(t))...)
	slices.Sort(lines)
	lines = append(slices.Compact(lines), values()...)
	got := []byte(header + strings.Join(lines, "\n") + "\n")
	if *update {
		if err := os.WriteFile(list, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("the driver exports:\n%s\n%s says:\n%s\n(-update writes it anew)", got, list, want)
	}
}

// exercise takes a volume with a group through its life, and makes a call that fails.
func exercise(t *testing.T, d *inprocess.Driver) {
	t.Helper()
	ctx := t.Context()
	controller, node := csi.NewControllerClient(d.Conn), csi.NewNodeClient(d.Conn)
	capability := &csi.VolumeCapability{
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{VolumeMountGroup: "4711"}},
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
	}
	_, err := controller.CreateVolume(ctx, &csi.CreateVolumeRequest{Name: "nowhere",
		Parameters: map[string]string{"pool": "none"}})
	if status.Code(err) != codes.InvalidArgument {
		t.Fatalf("a volume of no pool: %v", err)
	}
	made, err := controller.CreateVolume(ctx, &csi.CreateVolumeRequest{
		Name: "series", Parameters: map[string]string{"pool": "directory"},
		CapacityRange:      &csi.CapacityRange{RequiredBytes: 1 << 20},
		VolumeCapabilities: []*csi.VolumeCapability{capability},
	})
	if err != nil {
		t.Fatal(err)
	}
	id, staging := made.GetVolume().GetVolumeId(), filepath.Join(t.TempDir(), "staging")
	if err := os.Mkdir(staging, 0o750); err != nil {
		t.Fatal(err)
	}
	_, err = node.NodeStageVolume(ctx, &csi.NodeStageVolumeRequest{
		VolumeId: id, StagingTargetPath: staging, VolumeCapability: capability,
		VolumeContext: made.GetVolume().GetVolumeContext(),
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := node.NodeUnstageVolume(ctx,
		&csi.NodeUnstageVolumeRequest{VolumeId: id, StagingTargetPath: staging}); err != nil {
		t.Fatal(err)
	}
	if _, err := controller.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: id}); err != nil {
		t.Fatal(err)
	}
}

// series lists the registry's series: one per line, with its labels, as Prometheus names them.
func series(t *testing.T, registry *prometheus.Registry) []string {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, family := range families {
		name := family.GetName()
		if !strings.HasPrefix(name, "stowage_") && !strings.HasPrefix(name, "aws_ebs_csi_") &&
			!slices.Contains(ofProcess(), name) {
			continue
		}
		var labels []string
		for _, label := range family.GetMetric()[0].GetLabel() {
			labels = append(labels, label.GetName())
		}
		if family.GetMetric()[0].GetHistogram() == nil {
			lines = append(lines, line(name, labels...))
			continue
		}
		lines = append(lines, line(name+"_bucket", append(slices.Clone(labels), "le")...), line(name+"_count", labels...),
			line(name+"_sum", labels...))
	}
	return lines
}

// ofProcess lists the relevant metrics of the process.
func ofProcess() []string {
	return []string{
		"process_cpu_seconds_total", "process_max_fds", "process_open_fds", "process_resident_memory_bytes",
		"process_start_time_seconds",
	}
}

// values lists the values of the labels that have a known set of values. The label outcome belongs to two metrics.
func values() []string {
	outcomes := []string{"ok", "complete", "cut_short"}
	for kind := backends.Unknown; !strings.HasPrefix(kind.String(), "kind "); kind++ {
		outcomes = append(outcomes, kind.String())
	}
	var code []string
	for c := codes.OK; c <= codes.Unauthenticated; c++ {
		code = append(code, c.String())
	}
	var methods []string
	for _, service := range []grpc.ServiceDesc{
		csi.Identity_ServiceDesc, csi.Controller_ServiceDesc, csi.GroupController_ServiceDesc, csi.Node_ServiceDesc,
	} {
		for _, method := range service.Methods {
			methods = append(methods, "/"+service.ServiceName+"/"+method.MethodName)
		}
	}
	return []string{
		"values code: " + strings.Join(code, "|"), "values method: " + strings.Join(methods, "|"),
		"values outcome: " + strings.Join(outcomes, "|"), "values result: unchanged|changed|denied",
		"values health: unreachable|degraded",
	}
}

func line(name string, labels ...string) string {
	slices.Sort(labels)
	return strings.TrimSpace(name + " " + strings.Join(labels, " "))
}

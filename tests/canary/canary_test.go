package canary

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/stowage-csi/stowage/tests/orchestrator"
	"github.com/stowage-csi/stowage/tests/secrets"
)

func build(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "stowage")
	if err := orchestrator.Build(t.Context(), binary); err != nil {
		t.Fatal(err)
	}
	return binary
}

func TestNoSecretIsShown(t *testing.T) {
	binary := build(t)
	for _, format := range []string{"text", "json"} {
		for _, backend := range []string{"memory", "local"} {
			t.Run(format+" "+backend, func(t *testing.T) { run(t, binary, format, backend) })
		}
	}
}

func run(t *testing.T, binary, format, backend string) {
	workspace, err := orchestrator.NewWorkspace("stowage-canary")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := workspace.Remove(); err != nil {
			t.Error(err)
		}
	})
	driver := &orchestrator.Driver{
		Binary: binary, Workspace: workspace, Backend: backend,
		Args: []string{"-v=10", "--log-format=" + format, "--delegate-fsgroup"},
	}
	if _, err := driver.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	connection, err := grpc.NewClient(driver.Endpoint(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	c := &caller{t: t, connection: connection, mounts: workspace.Mounts()}
	c.everyMethod()
	c.lifecycle()
	if err := connection.Close(); err != nil {
		t.Error(err)
	}
	if err := driver.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	c.readLog(workspace.Log())
}

// caller makes calls and looks for the secret in the answers.
type caller struct {
	t          *testing.T
	connection *grpc.ClientConn
	mounts     string
	calls      int
}

func (c *caller) call(method string, request, response proto.Message) error {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 2*time.Minute)
	defer cancel()
	c.calls++
	err := c.connection.Invoke(ctx, method, request, response)
	if err != nil && strings.Contains(err.Error(), secrets.Canary) {
		c.t.Errorf("%s: the error shows a secret: %v", method, err)
	}
	return err
}

// everyMethod sends each message with a secret in every field, alone and with otherwise valid IDs.
func (c *caller) everyMethod() {
	services := csi.File_csi_proto.Services()
	for i := range services.Len() {
		methods := services.Get(i).Methods()
		for j := range methods.Len() {
			method := methods.Get(j)
			if method.IsStreamingServer() {
				continue
			}
			request := dynamicpb.NewMessage(method.Input())
			secrets.Plant(request)
			fill(request, filepath.Join(c.mounts, "nowhere"))
			path := fmt.Sprintf("/%s/%s", services.Get(i).FullName(), method.Name())
			_ = c.call(path, request, dynamicpb.NewMessage(method.Output())) // it may be refused
		}
	}
}

// fill sets a message's plain fields to values that pass the first checks.
func fill(request protoreflect.ProtoMessage, path string) {
	m := request.ProtoReflect()
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		if field.Kind() != protoreflect.StringKind || field.IsList() || field.IsMap() {
			continue
		}
		value := "some-id"
		if strings.HasSuffix(string(field.Name()), "_path") {
			value = path
		}
		m.Set(field, protoreflect.ValueOfString(value))
	}
}

// lifecycle takes a volume through its life with secrets in all allowed fields, and makes each call once more with
// secrets in other fields.
func (c *caller) lifecycle() {
	staging, target := filepath.Join(c.mounts, "staging"), filepath.Join(c.mounts, "target")
	if err := os.MkdirAll(staging, 0o750); err != nil {
		c.t.Fatal(err)
	}
	capability := &csi.VolumeCapability{
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
	}
	var made csi.CreateVolumeResponse
	c.good("Controller/CreateVolume", &csi.CreateVolumeRequest{
		Name: "canary", VolumeCapabilities: []*csi.VolumeCapability{capability},
		CapacityRange: &csi.CapacityRange{RequiredBytes: 64 << 20},
	}, &made)
	id, volumeContext := made.GetVolume().GetVolumeId(), made.GetVolume().GetVolumeContext()
	var snapshot csi.CreateSnapshotResponse
	c.good("Controller/CreateSnapshot", &csi.CreateSnapshotRequest{Name: "canary", SourceVolumeId: id}, &snapshot)
	c.good("Controller/ControllerExpandVolume", &csi.ControllerExpandVolumeRequest{VolumeId: id,
		CapacityRange: &csi.CapacityRange{RequiredBytes: 80 << 20}}, &csi.ControllerExpandVolumeResponse{})
	flagged := proto.Clone(capability).(*csi.VolumeCapability)
	flagged.GetMount().MountFlags = []string{"password=" + secrets.Canary, "noatime"}
	_ = c.call("/csi.v1.Node/NodeStageVolume", &csi.NodeStageVolumeRequest{
		VolumeId: id, StagingTargetPath: staging, VolumeCapability: flagged, VolumeContext: volumeContext,
	}, &csi.NodeStageVolumeResponse{}) // a filesystem rejects the option, but this call may succeed or fail
	_ = c.call("/csi.v1.Node/NodeUnstageVolume", &csi.NodeUnstageVolumeRequest{VolumeId: id, StagingTargetPath: staging},
		&csi.NodeUnstageVolumeResponse{})
	c.good("Node/NodeStageVolume", &csi.NodeStageVolumeRequest{VolumeId: id, StagingTargetPath: staging,
		VolumeCapability: capability, VolumeContext: volumeContext}, &csi.NodeStageVolumeResponse{})
	c.good("Node/NodePublishVolume", &csi.NodePublishVolumeRequest{VolumeId: id, StagingTargetPath: staging,
		TargetPath: target, VolumeCapability: capability, VolumeContext: volumeContext}, &csi.NodePublishVolumeResponse{})
	c.good("Node/NodeUnpublishVolume", &csi.NodeUnpublishVolumeRequest{VolumeId: id, TargetPath: target},
		&csi.NodeUnpublishVolumeResponse{})
	c.good("Node/NodeUnstageVolume", &csi.NodeUnstageVolumeRequest{VolumeId: id, StagingTargetPath: staging},
		&csi.NodeUnstageVolumeResponse{})
	c.good("Controller/DeleteSnapshot", &csi.DeleteSnapshotRequest{SnapshotId: snapshot.GetSnapshot().GetSnapshotId()},
		&csi.DeleteSnapshotResponse{})
	c.good("Controller/DeleteVolume", &csi.DeleteVolumeRequest{VolumeId: id}, &csi.DeleteVolumeResponse{})
}

// good sends a request with secrets in every map, which may be refused, and then with secrets only where the
// specification allows them, which must not be.
func (c *caller) good(method string, request, response proto.Message) {
	c.t.Helper()
	bad := proto.Clone(request)
	secrets.PlantMaps(bad, false)
	if method != "Controller/DeleteVolume" && method != "Controller/DeleteSnapshot" {
		_ = c.call("/csi.v1."+method, bad, proto.Clone(response)) // it may be refused
	}
	secrets.PlantMaps(request, true)
	if err := c.call("/csi.v1."+method, request, response); err != nil {
		c.t.Errorf("%s: %v", method, err)
	}
}

func (c *caller) readLog(path string) {
	text, err := os.ReadFile(path)
	if err != nil {
		c.t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		if bytes.Contains(line, []byte(secrets.Canary)) {
			c.t.Errorf("the log shows a secret: %s", line)
		}
	}
	// At the highest verbosity every call logs at least two lines; without them this test proves nothing.
	if lines := bytes.Count(text, []byte("\n")); c.calls < 50 || lines < 2*c.calls {
		c.t.Errorf("%d calls left %d lines in the log: the test looks at the wrong log", c.calls, lines)
	}
}

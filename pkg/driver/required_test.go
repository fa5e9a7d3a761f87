package driver

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// requiredOfSpec returns the fields that csi.proto calls REQUIRED, by request.
func requiredOfSpec(t *testing.T) map[string][]string {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}",
		"github.com/container-storage-interface/spec").Output()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "csi.proto"))
	if err != nil {
		t.Fatal(err)
	}
	required := map[string][]string{}
	for _, message := range regexp.MustCompile(`(?ms)^message (\w+Request) \{(.*?)^\}`).FindAllSubmatch(text, -1) {
		for _, field := range regexp.MustCompile(`(?m)((?:^ *//.*\n)+)^ +(?:repeated )?\S.* (\w+) = \d+`).FindAllSubmatch(
			message[2], -1) {
			said := strings.Join(strings.Fields(strings.ReplaceAll(string(field[1]), "//", "")), " ")
			if strings.Contains(said, "This field is REQUIRED") || strings.Contains(said, "This is a REQUIRED field") {
				required[string(message[1])] = append(required[string(message[1])], string(field[2]))
			}
		}
	}
	return required
}

// TestTheRequiredFieldsAreThoseOfTheSpecification: a newer specification adds its fields to the table.
func TestTheRequiredFieldsAreThoseOfTheSpecification(t *testing.T) {
	want, err := json.MarshalIndent(requiredOfSpec(t), "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	same(t, filepath.Join("testdata", "required.json"), append(want, '\n'))
}

// requests makes requests of each RPC with only the REQUIRED fields.
type requests struct {
	serving
	samples map[string]string // fields, as JSON
}

// everything serves a backend with all features, which has a group of snapshots.
func everything(t *testing.T) requests {
	t.Helper()
	definition, instance := memoryBackend(t)
	s := serveConfig(t, Config{Definition: definition, Instance: instance, NodeID: "n", StateDir: t.TempDir(),
		Log: slog.New(slog.DiscardHandler)}, time.Second)
	made, err := s.client.CreateVolume(t.Context(), &csi.CreateVolumeRequest{Name: "grouped",
		VolumeCapabilities: capabilityOf(mountCapability(csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER, ""))})
	if err != nil {
		t.Fatal(err)
	}
	group, err := csi.NewGroupControllerClient(s.connection).CreateVolumeGroupSnapshot(t.Context(),
		&csi.CreateVolumeGroupSnapshotRequest{Name: "g", SourceVolumeIds: []string{made.GetVolume().GetVolumeId()}})
	if err != nil {
		t.Fatal(err)
	}
	const capability = `{"mount":{},"access_mode":{"mode":"SINGLE_NODE_WRITER"}}`
	return requests{s, map[string]string{
		"name": `"x"`, "volume_id": `"x"`, "snapshot_id": `"x"`, "source_volume_id": `"x"`, "node_id": `"x"`,
		"readonly":          `false`,
		"source_volume_ids": `["` + made.GetVolume().GetVolumeId() + `"]`,
		"group_snapshot_id": `"` + group.GetGroupSnapshot().GetGroupSnapshotId() + `"`,
		"snapshot_ids":      `["` + group.GetGroupSnapshot().GetSnapshots()[0].GetSnapshotId() + `"]`,
		"volume_capability": capability, "volume_capabilities": `[` + capability + `]`,
		"capacity_range":      `{"required_bytes":1048576}`,
		"mutable_parameters":  `{"readAheadKiB":"64"}`,
		"staging_target_path": `"/nowhere/x"`, "target_path": `"/nowhere/x"`, "volume_path": `"/nowhere/x"`,
	}}
}

// send calls the RPC of a request and returns the code of its answer.
func (r requests) send(t *testing.T, method protoreflect.MethodDescriptor,
	fields map[string]string) (codes.Code, error) {
	t.Helper()
	var pairs []string
	for name, value := range fields {
		pairs = append(pairs, `"`+name+`":`+value)
	}
	request, answer := dynamicpb.NewMessage(method.Input()), dynamicpb.NewMessage(method.Output())
	if err := protojson.Unmarshal([]byte("{"+strings.Join(pairs, ",")+"}"), request); err != nil {
		t.Fatal(err)
	}
	err := r.connection.Invoke(t.Context(), "/"+string(method.Parent().FullName())+"/"+string(method.Name()),
		proto.Message(request), proto.Message(answer))
	return status.Code(err), err
}

// methods returns the RPCs that take the requests, of the services that this driver has.
func methods(t *testing.T, request string) protoreflect.MethodDescriptor {
	t.Helper()
	for i := range csi.File_csi_proto.Services().Len() {
		service := csi.File_csi_proto.Services().Get(i)
		if method := service.Methods().ByName(protoreflect.Name(strings.TrimSuffix(request, "Request"))); method != nil &&
			service.Name() != "SnapshotMetadata" {
			return method
		}
	}
	return nil
}

// TestRequiredFields: a request without a field that the specification calls REQUIRED is refused with INVALID_ARGUMENT.
func TestRequiredFields(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "required.json"))
	if err != nil {
		t.Fatal(err)
	}
	var required map[string][]string
	if err := json.Unmarshal(text, &required); err != nil {
		t.Fatal(err)
	}
	s, rows := everything(t), 0
	for _, request := range slices.Sorted(maps.Keys(required)) {
		method := methods(t, request)
		if method == nil {
			continue // of a service that this driver does not have
		}
		whole := map[string]string{}
		for _, field := range required[request] {
			whole[field] = s.samples[field]
		}
		for _, field := range required[request] {
			if field == "readonly" {
				continue // A missing bool is false.
			}
			rows++
			without := maps.Clone(whole)
			delete(without, field)
			if code, err := s.send(t, method, without); code != codes.InvalidArgument ||
				!strings.Contains(err.Error(), strings.TrimSuffix(strings.ReplaceAll(field, "_", " "), "s")) &&
					!strings.Contains(err.Error(), field) {
				t.Errorf("%s without %s: %v, want InvalidArgument that names it", request, field, err)
			}
		}
		// A deleted thing does not exist for the rows that follow.
		defer func() {
			if code, err := s.send(t, method, whole); code == codes.InvalidArgument {
				t.Errorf("%s with all that is required: %v", request, err)
			}
		}()
	}
	if rows < 40 {
		t.Errorf("only %d fields", rows)
	}
}

// manyIDs returns n IDs, as JSON.
func manyIDs(t *testing.T, n int) string {
	t.Helper()
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprint("x", i)
	}
	text, err := json.Marshal(ids)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestEmptyMessages covers the fields that the specification requires within a message, which may itself be missing.
func TestEmptyMessages(t *testing.T) {
	s := everything(t)
	for what, test := range map[string]struct{ request, field, value, says string }{
		"a range without sizes":         {"CreateVolumeRequest", "capacity_range", `{}`, "required_bytes"},
		"growth to no size":             {"ControllerExpandVolumeRequest", "capacity_range", `{}`, "required_bytes"},
		"growth on the node to no size": {"NodeExpandVolumeRequest", "capacity_range", `{}`, "required_bytes"},
		"a place that is nowhere":       {"CreateVolumeRequest", "accessibility_requirements", `{}`, "requisite"},
		"a place without segments": {"CreateVolumeRequest", "accessibility_requirements", `{"requisite":[{}]}`,
			"segments"},
		"a preference without segments": {"CreateVolumeRequest", "accessibility_requirements", `{"preferred":[{}]}`,
			"segments"},
		"a snapshot's place":     {"CreateSnapshotRequest", "accessibility_requirements", `{}`, "requisite"},
		"contents of nothing":    {"CreateVolumeRequest", "volume_content_source", `{}`, "content source"},
		"contents of a snapshot": {"CreateVolumeRequest", "volume_content_source", `{"snapshot":{}}`, "snapshot_id"},
		"contents of a volume":   {"CreateVolumeRequest", "volume_content_source", `{"volume":{}}`, "volume_id"},
		"a capability without a type": {"CreateVolumeRequest", "volume_capabilities",
			`[{"access_mode":{"mode":"SINGLE_NODE_WRITER"}}]`, "access type"},
		"a capability without a mode":    {"CreateVolumeRequest", "volume_capabilities", `[{"mount":{}}]`, "access mode"},
		"capacity for nothing":           {"GetCapacityRequest", "volume_capabilities", `[{}]`, "access mode"},
		"growth for nothing":             {"ControllerExpandVolumeRequest", "volume_capability", `{}`, "access mode"},
		"growth on the node for nothing": {"NodeExpandVolumeRequest", "volume_capability", `{}`, "access mode"},
		"a group of a volume without ID": {"CreateVolumeGroupSnapshotRequest", "source_volume_ids", `[""]`, "ID is missing"},
		"a group of one volume twice":    {"CreateVolumeGroupSnapshotRequest", "source_volume_ids", `["x","x"]`, "twice"},
		"a group of too many volumes": {"CreateVolumeGroupSnapshotRequest", "source_volume_ids", manyIDs(t, 257),
			"257 volumes: name at most 256"},
		"a look at one snapshot twice": {"GetVolumeGroupSnapshotRequest", "snapshot_ids", `["x","x"]`, "twice"},
		"the deletion of a snapshot too long": {"DeleteVolumeGroupSnapshotRequest", "snapshot_ids",
			`["` + strings.Repeat("s", 129) + `"]`, "129 bytes"},
		"a group's snapshot without ID": {"DeleteVolumeGroupSnapshotRequest", "snapshot_ids", `[""]`, "snapshot"},
		"a place that is not a path": {"NodeGetVolumeHealthRequest", "volume_publish_path", `"x"`,
			"volume_publish_path"},
		"a staging place that is no path": {"NodeGetVolumeHealthRequest", "staging_target_path", `"x"`,
			"staging_target_path"},
	} {
		fields := map[string]string{}
		for _, field := range requiredOfSpec(t)[test.request] {
			fields[field] = s.samples[field]
		}
		fields[test.field] = test.value
		if code, err := s.send(t, methods(t, test.request), fields); code != codes.InvalidArgument ||
			!strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, want InvalidArgument that says %q", what, err, test.says)
		}
	}
}

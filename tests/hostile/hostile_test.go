package hostile

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/stowage-csi/stowage/tests/secrets"
)

// deserved reports whether an answer is acceptable. INTERNAL, UNKNOWN and UNAVAILABLE would mean that the driver did
// not understand the failure, or invite the caller to retry forever. The exception is a volume that is staged or
// published there: the refusal of another request is UNAVAILABLE (docs/design/014), with a message that says so.
func deserved(method protoreflect.Name, answer *status.Status) bool {
	if strings.HasPrefix(string(method), "Node") && answer.Code() == codes.Unavailable {
		return strings.Contains(answer.Message(), "it is staged already at ") ||
			strings.Contains(answer.Message(), "what was made is left at ")
	}
	return slices.Contains([]codes.Code{
		codes.OK, codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.OutOfRange,
		codes.FailedPrecondition, codes.Aborted, codes.Unimplemented, codes.ResourceExhausted,
	}, answer.Code())
}

func TestHostileText(t *testing.T) {
	for _, backend := range []string{"memory", "local"} {
		t.Run(backend, func(t *testing.T) {
			root := t.TempDir()
			beside := filepath.Join(root, "beside")
			plantPrecious(t, beside)
			before := picture(t, beside)
			w := newWorld(t, backend, root)
			calls := 0
			for _, method := range methods() {
				for _, request := range w.requests(method.Input().Name()) {
					calls += w.mutate(t, method, request, values(beside))
				}
			}
			if after := picture(t, beside); !maps.Equal(before, after) {
				t.Errorf("files beside the data directory changed:\nbefore %v\nafter  %v", before, after)
			}
			t.Logf("%d calls", calls)
			if calls < 1000 {
				t.Errorf("only %d calls were made: the walk is broken", calls)
			}
		})
	}
}

func plantPrecious(t *testing.T, beside string) {
	t.Helper()
	for path, text := range map[string]string{"precious": "the only copy", "full/of": "data", "full/deep/er": "data"} {
		path = filepath.Join(beside, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// picture returns the complete state of a tree: the paths, modes, owners and contents.
func picture(t *testing.T, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		all[path] = info.Mode().String()
		if entry.Type().IsRegular() {
			data, err := os.ReadFile(path)
			all[path] += fmt.Sprintf(" %x", sha256.Sum256(data))
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// methods returns all methods of the services that the driver offers.
func methods() []protoreflect.MethodDescriptor {
	var list []protoreflect.MethodDescriptor
	services := csi.File_csi_proto.Services()
	for _, name := range []protoreflect.Name{"Identity", "Controller", "GroupController", "Node"} {
		service := services.ByName(name)
		for i := range service.Methods().Len() {
			list = append(list, service.Methods().Get(i))
		}
	}
	return list
}

// mutate sends the request once for each hostile value in each of its text fields. The values of maps also hold
// secrets, which no answer shows.
func (w *world) mutate(t *testing.T, method protoreflect.MethodDescriptor, request proto.Message,
	hostile []string) int {
	t.Helper()
	calls := 0
	for _, field := range textFields(request.ProtoReflect().Descriptor()) {
		values := hostile
		if field.IsMap() {
			values = slices.Concat(hostile, secrets.Joined())
		}
		for _, value := range values {
			changed := proto.Clone(request)
			set(changed.ProtoReflect(), field, value)
			w.call(t, method, changed, fmt.Sprintf("%s %s=%.60q", method.Name(), field.Name(), value))
			calls++
		}
	}
	return calls
}

// textFields returns the fields of a message that contain text: directly, in a list, or as a map's values.
func textFields(message protoreflect.MessageDescriptor) []protoreflect.FieldDescriptor {
	var list []protoreflect.FieldDescriptor
	for i := range message.Fields().Len() {
		field := message.Fields().Get(i)
		if field.Kind() == protoreflect.StringKind || field.IsMap() && field.MapValue().Kind() == protoreflect.StringKind {
			list = append(list, field)
		}
	}
	return list
}

func set(m protoreflect.Message, field protoreflect.FieldDescriptor, text string) {
	value := protoreflect.ValueOfString(text)
	switch {
	case field.IsMap():
		entries := m.Mutable(field).Map()
		entries.Set(value.MapKey(), value)
		entries.Range(func(key protoreflect.MapKey, _ protoreflect.Value) bool {
			entries.Set(key, value)
			return true
		})
	case field.IsList():
		m.Mutable(field).List().Append(value)
	default:
		m.Set(field, value)
	}
}

func (w *world) call(t *testing.T, method protoreflect.MethodDescriptor, request proto.Message, what string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	response := dynamicpb.NewMessage(method.Output())
	err := w.driver.Conn.Invoke(ctx, fmt.Sprintf("/%s/%s", method.Parent().FullName(), method.Name()), request, response,
		grpc.WaitForReady(true))
	answer := status.Convert(err)
	if strings.Contains(answer.Message(), secrets.Canary) {
		t.Errorf("%s: the answer shows a secret: %s", what, answer.Message())
	}
	if !deserved(method.Name(), answer) {
		if _, marshal := proto.Marshal(request); marshal == nil {
			t.Errorf("%s: %s: %v", what, answer.Code(), err)
		}
	}
	if err == nil {
		w.undo(t, request, response)
	}
}

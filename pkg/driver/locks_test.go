package driver

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/stowage-csi/stowage/pkg/keylock"
)

// unlocked are the requests that only read.
func unlocked() map[string]bool {
	return map[string]bool{
		"ValidateVolumeCapabilitiesRequest": true, "ControllerGetVolumeRequest": true,
		"ControllerGetVolumeHealthRequest": true, "NodeGetVolumeStatsRequest": true, "NodeGetVolumeHealthRequest": true,
		"GetSnapshotRequest": true, "ListSnapshotsRequest": true, "GetVolumeGroupSnapshotRequest": true,
		"GetMetadataAllocatedRequest": true, "GetMetadataDeltaRequest": true,
	}
}

// Every request that names a thing locks it, unless it only reads; a new request must not be forgotten.
func TestEveryWritingRequestLocks(t *testing.T) {
	checked := 0
	protoregistry.GlobalTypes.RangeMessages(func(kind protoreflect.MessageType) bool {
		name := string(kind.Descriptor().Name())
		if kind.Descriptor().ParentFile().Package() != "csi.v1" || !strings.HasSuffix(name, "Request") {
			return true
		}
		message := kind.New()
		named := false
		for _, field := range []protoreflect.Name{"name", "volume_id", "snapshot_id", "group_snapshot_id"} {
			if f := kind.Descriptor().Fields().ByName(field); f != nil {
				message.Set(f, protoreflect.ValueOfString("one"))
				named = true
			}
		}
		if !named {
			return true
		}
		checked++
		keys := lockKeys(message.Interface())
		if locks := len(keys) > 0 && strings.Contains(keys[0]+"/", "/one/"); locks == unlocked()[name] {
			t.Errorf("%s locks %v", name, keys)
		}
		return true
	})
	if checked < 20 {
		t.Fatalf("only %d requests were checked", checked)
	}
}

func TestControllerAndNodeShareAVolumesKey(t *testing.T) {
	a := lockKeys(&csi.DeleteVolumeRequest{VolumeId: "v"})
	b := lockKeys(&csi.NodeStageVolumeRequest{VolumeId: "v"})
	c := lockKeys(&csi.ControllerPublishVolumeRequest{VolumeId: "v", NodeId: "n"})
	if !slices.Equal(a, b) || !slices.Equal(a, c) {
		t.Errorf("keys differ: %v %v %v", a, b, c)
	}
}

// Expansion and modification exclude all operations but each other.
func TestGrowingAndModifyingMeet(t *testing.T) {
	locks := keylock.New()
	interceptor := lock(locks)
	requests := map[string]any{
		"delete": &csi.DeleteVolumeRequest{VolumeId: "v"}, "attach": &csi.ControllerPublishVolumeRequest{VolumeId: "v"},
		"stage":  &csi.NodeStageVolumeRequest{VolumeId: "v"},
		"grow":   &csi.ControllerExpandVolumeRequest{VolumeId: "v"},
		"modify": &csi.ControllerModifyVolumeRequest{VolumeId: "v"},
	}
	for first, one := range requests {
		for second, other := range requests {
			_, err := interceptor(t.Context(), one, nil, func(ctx context.Context, _ any) (any, error) {
				return interceptor(ctx, other, nil, func(context.Context, any) (any, error) { return nil, nil })
			})
			meet := first == "grow" && second == "modify" || first == "modify" && second == "grow"
			if meet != (err == nil) || !meet && newAnswers().codeOf("", err) != codes.Aborted {
				t.Errorf("%s during %s: %v", second, first, err)
			}
		}
	}
}

func TestBusyIsAborted(t *testing.T) {
	locks := keylock.New()
	interceptor := lock(locks)
	request := &csi.DeleteVolumeRequest{VolumeId: "v"}
	_, err := interceptor(t.Context(), request, nil, func(ctx context.Context, request any) (any, error) {
		return interceptor(ctx, request, nil, func(context.Context, any) (any, error) {
			t.Error("two operations on one volume at once")
			return nil, nil
		})
	})
	if newAnswers().codeOf("", err) != codes.Aborted {
		t.Errorf("got %v", err)
	}
	if _, err := interceptor(t.Context(), request, nil,
		func(context.Context, any) (any, error) { return nil, nil }); err != nil {
		t.Errorf("the lock was not freed: %v", err)
	}
}

package driver

import (
	"fmt"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/stowage-csi/stowage/tests/secrets"
)

func TestEveryMessageIsRedacted(t *testing.T) {
	messages := 0
	protoregistry.GlobalTypes.RangeMessages(func(kind protoreflect.MessageType) bool {
		if kind.Descriptor().ParentFile().Package() != "csi.v1" || kind.Descriptor().IsMapEntry() {
			return true
		}
		message := kind.New()
		if secrets.Plant(message.Interface()) == 0 {
			return true
		}
		messages++
		original := proto.Clone(message.Interface())
		for _, text := range []string{
			redact(message.Interface()),
			redacted{message.Interface()}.LogValue().String(),
			fmt.Sprintf("%v %+v %s", redacted{message.Interface()}, redacted{message.Interface()},
				redacted{message.Interface()}),
		} {
			if strings.Contains(text, secrets.Canary) {
				t.Errorf("%s shows a secret: %s", kind.Descriptor().FullName(), text)
			}
		}
		if !proto.Equal(original, message.Interface()) {
			t.Errorf("%s: redacting changed the message itself", kind.Descriptor().FullName())
		}
		return true
	})
	if messages < 30 {
		t.Fatalf("only %d messages of csi.v1 can hold a secret: the walk is broken", messages)
	}
}

func TestRedactKeepsWhatHelps(t *testing.T) {
	text := redact(&csi.NodePublishVolumeRequest{
		VolumeId: "lv-1", TargetPath: "/pods/1/mount",
		VolumeContext: map[string]string{"pool": "image"},
		VolumeCapability: &csi.VolumeCapability{AccessType: &csi.VolumeCapability_Mount{
			Mount: &csi.VolumeCapability_MountVolume{FsType: "ext4", MountFlags: []string{"noatime", "data=ordered"}},
		}},
	})
	for _, want := range []string{"lv-1", "/pods/1/mount", "image", "ext4", "noatime", "data=ordered"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in %s", want, text)
		}
	}
}

// A parameter may hold several options, and a filesystem's name too.
func TestRedactHidesJoinedSecrets(t *testing.T) {
	for _, joined := range secrets.Joined() {
		text := redact(&csi.CreateVolumeRequest{
			Parameters:        map[string]string{"nfsvers": joined},
			MutableParameters: map[string]string{"onDelete": joined},
			AccessibilityRequirements: &csi.TopologyRequirement{
				Requisite: []*csi.Topology{{Segments: map[string]string{"zone": joined}}},
			},
			VolumeCapabilities: []*csi.VolumeCapability{{AccessType: &csi.VolumeCapability_Mount{
				Mount: &csi.VolumeCapability_MountVolume{FsType: joined, MountFlags: []string{joined}},
			}}},
		})
		if strings.Contains(text, secrets.Canary) {
			t.Errorf("%q is shown as %s", joined, text)
		}
	}
}

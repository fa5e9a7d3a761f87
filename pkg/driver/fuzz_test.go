package driver

import (
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/proto"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// FuzzDecode passes arbitrary messages to every decoder: each returns a value or Invalid.
func FuzzDecode(f *testing.F) {
	good, err := proto.Marshal(goodCreate())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte{})
	d := testDecoder()
	f.Fuzz(func(t *testing.T, data []byte) {
		check := func(what string, err error) {
			if err != nil && !backends.Is(err, backends.Invalid) {
				t.Errorf("%s: %v", what, err)
			}
		}
		var create csi.CreateVolumeRequest
		if proto.Unmarshal(data, &create) == nil {
			_, err := d.createVolume(&create)
			check("create", err)
			redact(&create)
		}
		var stage csi.NodeStageVolumeRequest
		if proto.Unmarshal(data, &stage) == nil {
			_, err := d.stageVolume(&stage)
			check("stage", err)
			redact(&stage)
		}
		var publish csi.NodePublishVolumeRequest
		if proto.Unmarshal(data, &publish) == nil {
			_, err := d.publishToTarget(&publish)
			check("publish", err)
		}
		var attach csi.ControllerPublishVolumeRequest
		if proto.Unmarshal(data, &attach) == nil {
			_, err := d.publishVolume(&attach)
			check("attach", err)
		}
		var snapshot csi.CreateSnapshotRequest
		if proto.Unmarshal(data, &snapshot) == nil {
			_, err := d.createSnapshot(&snapshot)
			check("snapshot", err)
		}
		var group csi.CreateVolumeGroupSnapshotRequest
		if proto.Unmarshal(data, &group) == nil {
			_, err := d.createGroup(&group)
			check("group", err)
		}
		var expand csi.NodeExpandVolumeRequest
		if proto.Unmarshal(data, &expand) == nil {
			_, err := d.expandOnNode(&expand)
			if !backends.Is(err, backends.NotFound) {
				check("expand", err)
			}
		}
	})
}

// FuzzEndpoint checks that only absolute paths are accepted.
func FuzzEndpoint(f *testing.F) {
	f.Add("unix:///run/csi.sock")
	f.Add("/a/../b")
	f.Fuzz(func(t *testing.T, endpoint string) {
		got, err := socketPath(endpoint)
		if err == nil && (got == "" || got[0] != '/' || len(got) > maxSocketPath) {
			t.Errorf("socketPath(%q) = %q", endpoint, got)
		}
	})
}

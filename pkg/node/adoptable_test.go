package node_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node"
	"github.com/stowage-csi/stowage/pkg/node/device"
)

// A raw device is published, and its staging path shows nothing any more. With and without its record, it is neither
// formatted nor write-protected under the pod.
func TestRawDeviceOfAPodStaysAsItIs(t *testing.T) {
	for name, use := range map[string]node.Use{
		"as a filesystem": {Type: backends.Mount, Mode: backends.SingleNodeMultiWriter},
		"read-only":       {Type: backends.Block, Mode: backends.SingleNodeReaderOnly},
	} {
		for _, form := range []string{"disk", "image"} {
			for _, lost := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, %s, record lost: %t", name, form, lost), func(t *testing.T) {
					w := newWorld(t)
					image := w.image("v", 16)
					if form == "disk" {
						w.node(image, false)
					}
					staging, publishing := w.stageRequest("v"), w.publishRequest("v")
					staging.Use.Type, publishing.Use.Type = backends.Block, backends.Block
					w.stage(staging)
					w.publish(publishing)
					loop := fmt.Sprintf("/dev/loop%d", unix.Minor(w.inspect(publishing.TargetPath).Rdev))
					t.Cleanup(func() { w.protect(loop, false) }) // for a test that failed
					w.detach(w.placeOf(staging))
					if lost {
						w.amnesia()
					}
					other := staging
					other.Use = use
					for range 2 {
						w.want(w.service.Stage(w.context(), other), backends.Unavailable, publishing.TargetPath, "unpublish it first")
					}
					w.wantZero(image)
					if w.protected(loop) || len(w.loops()) != 1 {
						t.Errorf("write-protected: %t; loop devices are %v", w.protected(loop), w.loops())
					}
					w.stage(staging)
					w.unpublish(publishing)
					w.unstage(staging)
					if form == "disk" {
						w.must(device.Detach(w.context(), image, patience))
					}
					w.wantNothingLeft()
				})
			}
		}
	}
}

// A filesystem is published, its staging path shows nothing any more, and its record is lost. The disk is neither
// handed out raw nor write-protected.
func TestMountedDeviceOfAPodStaysAsItIs(t *testing.T) {
	for name, use := range map[string]node.Use{
		"raw":       {Type: backends.Block, Mode: backends.SingleNodeMultiWriter},
		"read-only": {Type: backends.Mount, Mode: backends.SingleNodeReaderOnly},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			image := w.image("v", 16)
			loop := w.lent(image, false)
			staging, publishing := w.stageRequest("v"), w.publishRequest("v")
			w.stage(staging)
			w.publish(publishing)
			w.detach(staging.StagingPath)
			w.amnesia()
			other := staging
			other.Use = use
			w.want(w.service.Stage(w.context(), other), backends.Unavailable, publishing.TargetPath, "unpublish it first")
			if w.protected(loop) || len(w.mounts()) != 1 {
				t.Errorf("write-protected: %t; mounted are %v", w.protected(loop), w.mounts())
			}
			w.write(filepath.Join(publishing.TargetPath, "file"), "data")
			w.unpublish(publishing)
			w.unstage(staging)
			w.must(device.Detach(w.context(), image, patience))
			w.wantNothingLeft()
		})
	}
}

// A raw device is staged, and its record is lost. It is not formatted.
func TestRawStagingWithoutARecord(t *testing.T) {
	w := newWorld(t)
	image := w.image("v", 16)
	staging := w.stageRequest("v")
	staging.Use.Type = backends.Block
	w.stage(staging)
	w.amnesia()
	other := staging
	other.Use.Type = backends.Mount
	w.want(w.service.Stage(w.context(), other), backends.Unavailable, w.placeOf(staging), "unstage it first")
	w.wantZero(image)
	w.unstage(staging)
	w.wantNothingLeft()
}

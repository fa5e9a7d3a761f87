package node_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node"
)

// A pod of another group than the volume was staged for gets the files, unless they belong to another pod. Then the
// error says so.
func TestPublishForAnotherGroup(t *testing.T) {
	w := newWorld(t)
	w.groups = true
	w.restart()
	w.image("v", 16)
	staging := w.stageRequest("v")
	staging.MountGroup = "4711"
	w.stage(staging)
	file := filepath.Join(staging.StagingPath, "file")
	w.write(file, "data")
	pod := func(name, group string) node.PublishRequest {
		r := w.publishRequest("v")
		r.TargetPath, r.MountGroup = filepath.Join(w.path("pods"), name), group
		return r
	}
	wantGroup := func(when string, group uint32) {
		t.Helper()
		if root, below := w.groupOf(staging.StagingPath), w.groupOf(file); root != group || below != group {
			t.Errorf("%s the root belongs to group %d and the file to %d, want %d", when, root, below, group)
		}
	}
	w.publish(pod("first", "4711"))
	w.publish(pod("first", "4711"))
	w.publish(pod("none", ""))
	w.want(w.service.Publish(w.context(), pod("second", "4712")), backends.InUse, "4711", "4712", w.path("pods", "first"))
	w.want(w.service.Publish(w.context(), pod("first", "4712")), backends.Exists, "4711", "4712")
	reader := pod("reader", "4712")
	reader.ReadOnly = true // the kubelet gives no files to the group of a reader
	w.publish(reader)
	wantGroup("while the first pod has it", 4711)
	for _, name := range []string{"first", "none", "reader"} {
		w.unpublish(pod(name, ""))
	}

	w.must(os.Chown(file, 0, 99)) // no unnecessary work
	w.publish(pod("first", "4711"))
	if got := w.groupOf(file); got != 99 {
		t.Errorf("publishing for the group that it is staged for gave the file to group %d", got)
	}
	w.unpublish(pod("first", ""))

	w.publish(pod("second", "4712"))
	wantGroup("for the second pod", 4712)
	w.restart()
	w.want(w.service.Publish(w.context(), pod("first", "4711")), backends.InUse, "4712")
	w.unpublish(pod("second", ""))
	w.want(w.service.Publish(w.context(), pod("second", "a group")), backends.Invalid, "a group")
	w.unstage(staging)
	w.wantNothingLeft()
}

// A volume staged for no group is given to the first group that is asked for, even while it is published to pods
// without a group.
func TestPublishForAGroupAtLast(t *testing.T) {
	w := newWorld(t)
	w.groups = true
	w.restart()
	w.directory("v")
	staging, first, second := w.stageRequest("v"), w.publishRequest("v"), w.publishRequest("v")
	second.TargetPath, second.MountGroup = w.path("pods", "second"), "4711"
	w.stage(staging)
	w.publish(first)
	w.publish(second)
	if got := w.groupOf(staging.StagingPath); got != 4711 {
		t.Errorf("the root belongs to group %d, want 4711", got)
	}
	w.unpublish(first)
	w.unpublish(second)
	w.unstage(staging)
	w.wantNothingLeft()
}

// An interrupted walk for another group does not count as a walk for the group before.
func TestPublishAfterACutShortWalk(t *testing.T) {
	w := newWorld(t)
	w.groups = true
	w.restart()
	w.directory("v")
	staging, publishing := w.stageRequest("v"), w.publishRequest("v")
	staging.MountGroup, publishing.MountGroup = "4711", "4711"
	w.stage(staging)
	file := filepath.Join(staging.StagingPath, "file")
	w.write(file, "data")
	l := w.records() // what a killed Publish for group 4712 leaves: the intent, and some files of that group
	record := l.Get("v")
	record.Staged.Group = ""
	w.must(l.Put(record))
	w.must(os.Chown(file, 0, 4712))
	w.restart()
	w.publish(publishing)
	if got := w.groupOf(file); got != 4711 {
		t.Errorf("the file belongs to group %d, want 4711", got)
	}
	w.unpublish(publishing)
	w.unstage(staging)
	w.wantNothingLeft()
}

package node_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// A stage for another group, as the kubelet requests after its restart, gives away no files of a pod that uses them,
// and does not forget which group they belong to.
func TestStageForAnotherGroupWhilePublished(t *testing.T) {
	w := newWorld(t)
	w.groups = true
	w.restart()
	w.image("v", 16)
	staging := w.stageRequest("v")
	staging.MountGroup = "4711"
	w.stage(staging)
	file := filepath.Join(staging.StagingPath, "file")
	w.write(file, "data")
	w.must(os.Chown(file, 0, 4711))
	first := w.publishRequest("v")
	first.MountGroup = "4711"
	w.publish(first)

	other, none, second := staging, staging, first
	other.MountGroup, none.MountGroup = "4712", ""
	second.TargetPath, second.MountGroup = w.path("pods", "second"), "4712"
	w.want(w.service.Stage(w.context(), other), backends.Exists, "4711", "4712", first.TargetPath)
	w.stage(none)
	w.want(w.service.Publish(w.context(), second), backends.InUse, "4711", "4712")
	w.stage(staging)
	if root, below := w.groupOf(staging.StagingPath), w.groupOf(file); root != 4711 || below != 4711 {
		t.Errorf("while a pod of group 4711 has the volume, the root belongs to group %d and the file to %d", root, below)
	}
	w.unpublish(first)
	w.stage(other)
	if root, below := w.groupOf(staging.StagingPath), w.groupOf(file); root != 4712 || below != 4712 {
		t.Errorf("after that the root belongs to group %d and the file to %d, want 4712", root, below)
	}
	w.unstage(staging)
	w.wantNothingLeft()
}

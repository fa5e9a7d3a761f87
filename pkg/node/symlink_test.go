package node_test

import (
	"os"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// The kubelet's directory is a symlink, so the paths in requests differ from those in the mount table. Every call is
// recognised nevertheless, with and without the record.
func TestBelowASymlink(t *testing.T) {
	for _, form := range forms() {
		t.Run(form.name, func(t *testing.T) {
			w := newWorld(t)
			form.make(w, "v")
			w.must(os.Symlink(w.mkdir(w.path("real")), w.path("kubelet")))
			staging, publishing := w.stageRequest("v"), w.publishRequest("v")
			staging.Use.FSType = form.fsType
			staging.Use.Mode, publishing.Use.Mode = backends.SingleNodeWriter, backends.SingleNodeWriter
			staging.StagingPath = w.mkdir(w.path("kubelet", "staging"))
			publishing.StagingPath, publishing.TargetPath = staging.StagingPath, w.path("kubelet", "target")
			for range 2 {
				w.stage(staging)
				w.publish(publishing)
				w.restart()
			}
			w.amnesia()
			w.want(w.service.Unstage(w.context(), "v", staging.StagingPath), backends.InUse, w.path("real", "target"))
			for range 2 {
				w.stage(staging)
				w.publish(publishing)
			}
			if mounts := w.mounts(); len(mounts) != 2 {
				t.Errorf("mounted are %v, want one staging and one target", mounts)
			}
			w.unpublish(publishing)
			w.unstage(staging)
			w.wantNothingLeft()
		})
	}
}

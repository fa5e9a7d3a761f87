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

// The kubelet is given its directory by another name than when it staged the volume. The staging path is the same in
// every call, and the volume is unstaged as a whole.
func TestStagingPathByAnotherName(t *testing.T) {
	image := func(w *world, volume string) { w.image(volume, 32) }
	for _, form := range []struct {
		name string
		kind backends.AccessType
		make func(w *world, volume string)
	}{
		{"image", backends.Mount, image}, {"raw image", backends.Block, image},
		{"directory", backends.Mount, (*world).directory}, {"export", backends.Mount, (*world).export},
	} {
		t.Run(form.name, func(t *testing.T) {
			w := newWorld(t)
			form.make(w, "v")
			w.must(os.Symlink(w.mkdir(w.path("real")), w.path("kubelet")))
			staging, publishing := w.stageRequest("v"), w.publishRequest("v")
			staging.Use.Type, publishing.Use.Type = form.kind, form.kind
			staging.StagingPath = w.mkdir(w.path("kubelet", "staging"))
			w.stage(staging)
			staging.StagingPath, publishing.StagingPath = w.path("real", "staging"), w.path("real", "staging")
			w.stage(staging)
			w.publish(publishing)
			issues, err := w.service.Health(w.context(), "v", publishing.TargetPath, publishing.StagingPath)
			if err != nil || len(issues) > 0 {
				t.Errorf("the volume has the issues %+v, %v", issues, err)
			}
			within := publishing
			within.TargetPath = w.path("kubelet", "staging", "below")
			w.want(w.service.Publish(w.context(), within), backends.Invalid, "unstage")
			refused := staging
			refused.MountOptions = []string{"bind"}
			w.want(w.service.Stage(w.context(), refused), backends.Unavailable, "not allowed", "is left")
			w.want(w.service.Unstage(w.context(), "v", staging.StagingPath), backends.InUse, publishing.TargetPath)
			w.unpublish(publishing)
			w.unstage(staging)
			if w.shelf.Used(w.context(), "v") {
				t.Error("the volume is in use after it was unstaged")
			}
			w.wantNothingLeft()
		})
	}
}

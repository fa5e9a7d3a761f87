package node_test

import (
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node/mount"
)

// own makes a directory its own mount, with a propagation.
func (w *world) own(dir string, propagation uintptr) {
	w.Helper()
	w.mkdir(dir)
	w.must(unix.Mount(dir, dir, "", unix.MS_BIND, ""))
	w.must(unix.Mount("", dir, "", propagation, ""))
	w.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) }) // even if the test has unmounted it
}

// In a container, a mount that the host would not see is refused, before anything is created, with the cure.
func TestMissingPropagation(t *testing.T) {
	for _, form := range forms() {
		t.Run(form.name, func(t *testing.T) {
			w := newWorld(t)
			w.contained = true
			w.restart()
			if mount.OnHost() {
				t.Fatal("this test must run in a mount namespace of its own")
			}
			form.make(w, "v")
			staging, publishing := w.stageRequest("v"), w.publishRequest("v")
			staging.Use.FSType = form.fsType
			w.want(w.service.Stage(w.context(), staging), backends.Unavailable, "mountPropagation: Bidirectional",
				w.path("staging"), "pods would write")
			w.wantNothingLeft()
			for _, dir := range []string{w.path("staging"), w.path("pods")} {
				w.own(dir, unix.MS_PRIVATE)
			}
			w.want(w.service.Stage(w.context(), staging), backends.Unavailable, "mountPropagation: Bidirectional",
				"the mount "+w.path("staging"))
			w.must(unix.Mount("", w.path("staging"), "", unix.MS_SHARED, ""))
			w.stage(staging)
			w.stage(staging)
			w.want(w.service.Publish(w.context(), publishing), backends.Unavailable, "mountPropagation: Bidirectional",
				filepath.Dir(publishing.TargetPath))
			w.must(unix.Mount("", w.path("pods"), "", unix.MS_SHARED, ""))
			w.publish(publishing)
			// An existing mount stays as it is, or is unmounted, whatever it is on.
			w.must(unix.Mount("", w.path("pods"), "", unix.MS_PRIVATE, ""))
			w.publish(publishing)
			w.unpublish(publishing)
			w.unstage(staging)
			for _, dir := range []string{w.path("staging"), w.path("pods")} {
				w.detach(dir)
			}
			w.wantNothingLeft()
		})
	}
}

// Without an outside view, as on a machine without containers, nothing is checked.
func TestPropagationIsForContainers(t *testing.T) {
	w := newWorld(t)
	w.directory("v")
	w.own(w.path("staging"), unix.MS_PRIVATE)
	w.stage(w.stageRequest("v"))
	w.unstage(w.stageRequest("v"))
	w.detach(w.path("staging"))
	w.wantNothingLeft()
}

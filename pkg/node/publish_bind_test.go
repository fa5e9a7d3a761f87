package node_test

import (
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// unmounting unmounts a path when the first ownership walk begins.
type unmounting struct {
	walks
	path string
	err  error
}

func (u *unmounting) WalkBegan() {
	u.walks.WalkBegan()
	if u.path != "" {
		u.err = unix.Unmount(u.path, unix.MNT_DETACH)
	}
	u.path = ""
}

// The volume is unmounted from the staging path while Publish gives its files to a group. The staging path shows an
// empty directory of the node's own disk then, which no pod gets.
func TestUnmountedWhilePublishing(t *testing.T) {
	for _, form := range forms() {
		t.Run(form.name, func(t *testing.T) {
			w := newWorld(t)
			form.make(w, "v")
			staging, publishing := w.stageRequest("v"), w.publishRequest("v")
			staging.Use.FSType, publishing.MountGroup = form.fsType, "4711"
			intruder := &unmounting{path: staging.StagingPath}
			w.groups, w.observer = true, intruder
			w.restart()
			w.stage(staging)
			w.want(w.service.Publish(w.context(), publishing), backends.InUse, "NodeStageVolume", staging.StagingPath)
			if intruder.err != nil || intruder.began.Load() != 1 {
				t.Fatalf("after %d walks: %v: nothing is shown by this", intruder.began.Load(), intruder.err)
			}
			if mounts := w.mounts(); len(mounts) != 0 {
				t.Errorf("mounted are %v, want nothing", mounts)
			}
			w.stage(staging)
			w.publish(publishing)
			w.write(filepath.Join(publishing.TargetPath, "file"), "data")
			w.wantContent(filepath.Join(staging.StagingPath, "file"), "data")
			w.unpublish(publishing)
			w.unstage(staging)
			w.wantNothingLeft()
		})
	}
}

package node_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node/ledger"
)

// tooDeep nests directories too deep to give them to a group.
func (w *world) tooDeep(path string) {
	w.Helper()
	dir, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	w.must(err)
	for range 10_050 {
		w.must(unix.Mkdirat(dir, "d", 0o700))
		below, err := unix.Openat(dir, "d", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		w.must(err)
		w.must(unix.Close(dir))
		dir = below
	}
	w.must(unix.Close(dir))
	w.Cleanup(func() { w.flatten(path) })
}

// flatten removes the directories of tooDeep: os.RemoveAll needs a descriptor for each level.
func (w *world) flatten(path string) {
	first, next := filepath.Join(path, "d"), filepath.Join(path, "next")
	for {
		err := os.Rename(filepath.Join(first, "d"), next)
		w.must(os.Remove(first))
		if err != nil {
			return
		}
		w.must(os.Rename(next, first))
	}
}

// visitor opens a directory when an ownership walk begins, and keeps it open.
type visitor struct {
	path string
	open []*os.File
}

func (v *visitor) WalkBegan() {
	if file, err := os.Open(v.path); err == nil {
		v.open = append(v.open, file)
	}
}
func (v *visitor) WalkProgressed(int64, int64, int64) {}
func (v *visitor) WalkEnded(time.Duration, error)     {}

func (v *visitor) leave() {
	for _, file := range v.open {
		_ = file.Close()
	}
	v.open = nil
}

// A stage fails for a permanent reason, and its mount cannot be taken down, or belongs to an earlier call. The
// orchestrator must not be told that nothing is there, because it would forget the mount.
func TestStageLeavesAMount(t *testing.T) {
	w := newWorld(t)
	w.directory("v")
	w.tooDeep(w.path("directories", "v"))
	staging := w.stageRequest("v")
	staging.MountGroup = "1"
	guest := &visitor{path: staging.StagingPath}
	w.groups, w.observer = true, guest
	w.restart()
	for range 2 {
		w.want(w.service.Stage(w.context(), staging), backends.Unavailable, "deep", "is left", staging.StagingPath)
		if len(w.mounts()) != 1 {
			t.Errorf("mounted is %v: nothing is shown by this", w.mounts())
		}
	}
	guest.leave()
	w.unstage(staging)
	w.wantNothingLeft()
	guest.path = "/none"
	w.want(w.service.Stage(w.context(), staging), backends.Invalid, "deep")
	w.wantNothingLeft()
}

// The volume is refused for good, but the time of the call ends during the cleanup. A final answer would make the
// kubelet forget what is still there.
func TestStageIsTakenDownForLong(t *testing.T) {
	w := newServedWorld(t) // Which does not wait for what hangs.
	w.directory("v")
	w.tooDeep(w.path("directories", "v"))
	staging := w.stageRequest("v")
	staging.MountGroup = "1"
	w.groups = true
	w.restart()
	w.shelf.slow = make(chan struct{})
	err := w.until(w.shelf.waiting.Load, func(ctx context.Context) error { return w.service.Stage(ctx, staging) })
	w.want(err, backends.Unavailable, "deep", "still being taken down")
	w.want(w.service.CheckUnused(w.context(), "v"), backends.InUse, "staged at "+staging.StagingPath)
	close(w.shelf.slow)
	if !eventually(func() bool { return !w.shelf.Used(w.context(), "v") }) {
		t.Error("the volume is in use still, though the taking down may go on")
	}
	if !eventually(func() bool {
		err = w.service.Stage(w.context(), staging)
		return backends.Is(err, backends.Invalid)
	}) {
		t.Errorf("staging it again: %v, want the refusal, which is final once all is taken down", err)
	}
	w.wantNothingLeft()
}

// An earlier stage was interrupted, and the next fails before it reaches what that left.
func TestStageFailsAfterAnother(t *testing.T) {
	w := newWorld(t)
	image := w.image("v", 16)
	staging := w.stageRequest("v")
	w.stage(staging)
	source := w.shelf.sources["v"]
	for _, pending := range []bool{false, true} {
		if pending {
			w.intend(staging, ledger.Source{Kind: ledger.Device, Path: image, Image: true})
		}
		delete(w.shelf.sources, "v")
		w.want(w.service.Stage(w.context(), staging), backends.Unavailable, "there is no volume", "is left",
			staging.StagingPath)
		w.shelf.sources["v"] = source
		options := staging
		options.MountOptions = []string{"bind"}
		w.want(w.service.Stage(w.context(), options), backends.Unavailable, "not allowed", "is left", staging.StagingPath)
	}
	w.unstage(staging)
	delete(w.shelf.sources, "v")
	w.want(w.service.Stage(w.context(), staging), backends.NotFound, "there is no volume")
	w.wantNothingLeft()
}

// The volume is published, and publishing it again fails.
func TestPublishFailsAfterAnother(t *testing.T) {
	w := newWorld(t)
	w.directory("v")
	staging, publishing := w.stageRequest("v"), w.publishRequest("v")
	w.stage(staging)
	w.publish(publishing)
	w.detach(staging.StagingPath)
	w.want(w.service.Publish(w.context(), publishing), backends.Unavailable, "NodeStageVolume", "is left",
		publishing.TargetPath)
	w.unpublish(publishing)
	w.want(w.service.Publish(w.context(), publishing), backends.InUse, "NodeStageVolume")
	w.unstage(staging)
	w.wantNothingLeft()
}

// A refusal is not final while something is mounted at the staging path, although no record says that it is the volume.
func TestRefusalWithoutARecord(t *testing.T) {
	for _, kind := range []backends.AccessType{backends.Mount, backends.Block} {
		t.Run(string(kind), func(t *testing.T) {
			w := newWorld(t)
			w.noteless = true // Its storage notes no use.
			w.restart()
			w.image("v", 16)
			staging := w.stageRequest("v")
			staging.Use.Type = kind
			refused := backends.Errorf(backends.Invalid, "mount_flags has 4097 bytes: leave some out")
			for _, path := range []string{staging.StagingPath, "", "relative", "/proc/self/../x"} {
				if err := w.service.StaysStaged(w.context(), "v", path, refused); !backends.Is(err, backends.Invalid) {
					t.Errorf("with nothing at %q, it becomes %v", path, err)
				}
			}
			w.stage(staging)
			err := w.service.StaysStaged(w.context(), "w", staging.StagingPath, refused)
			if !backends.Is(err, backends.Invalid) {
				t.Errorf("with another volume at the path, it becomes %v", err)
			}
			w.amnesia()
			err = w.service.StaysStaged(w.context(), "v", staging.StagingPath, refused)
			if !backends.Is(err, backends.Unavailable) || !strings.Contains(err.Error(), staging.StagingPath) {
				t.Errorf("with the volume mounted, it becomes %v, want Unavailable that names the path", err)
			}
			w.stage(staging)
			w.unstage(staging)
			w.wantNothingLeft()
		})
	}
}

package node_test

import (
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node"
	"github.com/stowage-csi/stowage/pkg/node/device"
)

// published is a way in which a volume is published when its record is lost.
type published struct {
	name  string
	kind  backends.AccessType
	make  func(w *world) (disk string) // the image behind a disk of the node
	known bool                         // the backend can tell where the volume is without the attributes of Stage
}

func publishedForms() []published {
	image := func(w *world) string { w.image("v", 16); return "" }
	disk := func(w *world) string {
		path := w.image("v", 16)
		w.shelf.sources["v"] = backends.Device{Path: w.attach(path)}
		return path
	}
	directory := func(w *world) string { w.directory("v"); return "" }
	export := func(w *world) string { w.export("v"); return "" }
	return []published{
		{"image", backends.Mount, image, true}, {"raw image", backends.Block, image, true},
		{"disk", backends.Mount, disk, true}, {"raw disk", backends.Block, disk, true},
		{"disk", backends.Mount, disk, false}, {"raw disk", backends.Block, disk, false},
		{"directory", backends.Mount, directory, true}, {"directory", backends.Mount, directory, false},
		{"export", backends.Mount, export, true}, {"export", backends.Mount, export, false},
	}
}

// A volume is published, and its record is lost: it is not unstaged, however often that is asked for, and also when it
// was staged once more before.
func TestRecordLostWhilePublished(t *testing.T) {
	for _, form := range publishedForms() {
		for _, again := range []bool{false, true} {
			name := form.name + ", " + string(form.kind)
			if !form.known {
				name += ", unknown to the backend"
			}
			if again {
				name += ", staged again"
			}
			t.Run(name, func(t *testing.T) {
				w := newWorld(t)
				disk := form.make(w)
				staging, publishing := w.stageRequest("v"), w.publishRequest("v")
				staging.Use.Type, publishing.Use.Type = form.kind, form.kind
				w.stage(staging)
				w.publish(publishing)
				w.amnesia()
				if again {
					w.stage(staging)
				}
				w.refusesToUnstage(staging, publishing.TargetPath, form.known)
				w.stage(staging)
				w.publish(publishing)
				w.unpublish(publishing)
				w.unstage(staging)
				if disk != "" {
					w.must(device.Detach(w.context(), disk, patience))
				}
				w.wantNothingLeft()
			})
		}
	}
}

// refusesToUnstage checks that a volume is not unstaged that shows at a target.
func (w *world) refusesToUnstage(staging node.StageRequest, target string, known bool) {
	w.Helper()
	if !known {
		w.shelf.failure = backends.Errorf(backends.Invalid, "the attachment does not say the volume's size")
	}
	before := len(w.mounts())
	for range 2 {
		w.want(w.service.Unstage(w.context(), "v", staging.StagingPath), backends.InUse, target, "unpublish it first")
	}
	if len(w.mounts()) != before || len(w.shelf.released) != 0 {
		w.Errorf("mounted is %v, released %v", w.mounts(), w.shelf.released)
	}
	w.shelf.failure = nil
}

// The staging path is empty already, and a target shows the volume still.
func TestRecordLostAfterUnmount(t *testing.T) {
	for _, form := range publishedForms() {
		if !form.known || form.name == "export" { // nothing says then what shows
			continue
		}
		t.Run(form.name+", "+string(form.kind), func(t *testing.T) {
			w := newWorld(t)
			disk := form.make(w)
			staging, publishing := w.stageRequest("v"), w.publishRequest("v")
			staging.Use.Type, publishing.Use.Type = form.kind, form.kind
			w.stage(staging)
			w.publish(publishing)
			w.detach(w.placeOf(staging))
			w.amnesia()
			w.refusesToUnstage(staging, publishing.TargetPath, true)
			w.unpublish(publishing)
			w.unstage(staging)
			if disk != "" {
				w.must(device.Detach(w.context(), disk, patience))
			}
			w.wantNothingLeft()
		})
	}
}

// placeOf is where a staged volume shows.
func (w *world) placeOf(r node.StageRequest) string {
	if r.Use.Type == backends.Block {
		return r.StagingPath + "/device"
	}
	return r.StagingPath
}

// The directory is the root of a filesystem of its own: where that is mounted is not where the volume is published.
func TestRecordLostOfAMountedDirectory(t *testing.T) {
	w := newWorld(t)
	w.directory("v")
	w.stack(w.path("directories", "v"))
	staging := w.stageRequest("v")
	w.stage(staging)
	w.amnesia()
	w.unstage(staging)
	w.detach(w.path("directories", "v"))
	w.wantNothingLeft()
}

// A disk's filesystem is mounted in another mount namespace still. Once it is unmounted in this one nobody can tell
// from here which disk it was: the call that is repeated is refused too.
func TestRecordLostWhileMountedElsewhere(t *testing.T) {
	for _, fsType := range []string{"ext4", "btrfs"} {
		w := newWorld(t)
		path := w.image("v", 128)
		w.shelf.sources["v"] = backends.Device{Path: w.attach(path)}
		staging := w.stageRequest("v")
		staging.Use.FSType = fsType
		w.stage(staging)
		_, end := w.user("unshare", "--mount", "--propagation", "private", "/bin/sh", "-c", "echo ready; read line")
		w.amnesia()
		for range 2 {
			w.want(w.service.Unstage(w.context(), "v", staging.StagingPath), backends.InUse, "still mounted somewhere else")
		}
		end()
		w.unstage(staging)
		w.must(device.Detach(w.context(), path, patience))
		w.wantNothingLeft()
	}
}

// As before; then the disk goes, and another volume's gets its number. What the second is used for keeps the first
// from nothing.
func TestRecordLostAndNumberUsedAgain(t *testing.T) {
	for _, fsType := range []string{"ext4", "btrfs"} {
		w := newWorld(t)
		first, second := w.image("v", 128), w.image("b", 128)
		loop := w.attach(first)
		w.shelf.sources["v"], w.shelf.sources["b"] = backends.Device{Path: loop}, backends.Device{Path: loop}
		gone, staging := w.stageRequest("v"), w.stageRequest("b")
		gone.Use.FSType = fsType
		w.stage(gone)
		_, end := w.user("unshare", "--mount", "--propagation", "private", "/bin/sh", "-c", "echo ready; read line")
		w.amnesia()
		w.want(w.service.Unstage(w.context(), "v", gone.StagingPath), backends.InUse, "still mounted somewhere else")
		end()
		w.replace(loop, first, second)
		w.stage(staging)
		w.unstage(gone)
		w.unstage(staging)
		w.must(device.Detach(w.context(), second, patience))
		w.wantNothingLeft()
	}
}

// The server of a directory is dead and the record lost: what shows in the staging path is known to the kernel.
func TestRecordLostAndServerStops(t *testing.T) {
	h := newHanging(t, directoryForm, "unpublish")
	h.prepare("unpublish")
	h.amnesia()
	h.server.Stop(t)
	h.want(h.timed("unstage", patience), backends.InUse, h.publish.TargetPath)
	for _, call := range []string{"unpublish", "unstage"} {
		h.must(h.timed(call, patience))
	}
	h.server.Continue(t)
	h.wantNothingLeft()
}

package node_test

import (
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node"
	"github.com/stowage-csi/stowage/pkg/node/device"
	"github.com/stowage-csi/stowage/pkg/node/ledger"
	"github.com/stowage-csi/stowage/tests/stall"
)

// published is a form in which a volume is published when its record is lost.
type published struct {
	name  string
	kind  backends.AccessType
	make  func(w *world) (disk string) // the image behind a disk of the node
	known bool                         // the backend can locate the volume without the attributes of Stage
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

// A published volume whose record is lost is not unstaged, however often that is requested, even if it was staged once
// more before.
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

// refusesToUnstage checks that a volume that shows at a target is not unstaged.
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

// lostAfterUnmount runs a test for each form of volume of which a target still shows what it is, after its staging path
// was unmounted and its record was lost. The test unpublishes what is published.
func lostAfterUnmount(t *testing.T, mode backends.AccessMode,
	test func(w *world, staging node.StageRequest, publishing node.PublishRequest)) {
	t.Helper()
	for _, form := range publishedForms() {
		if !form.known || form.name == "export" { // nothing then says what shows
			continue
		}
		t.Run(form.name+", "+string(form.kind), func(t *testing.T) {
			w := newWorld(t)
			disk := form.make(w)
			staging, publishing := w.stageRequest("v"), w.publishRequest("v")
			staging.Use = node.Use{Type: form.kind, Mode: mode}
			publishing.Use = staging.Use
			w.stage(staging)
			w.publish(publishing)
			w.detach(w.placeOf(staging))
			w.amnesia()
			test(w, staging, publishing)
			w.unstage(staging)
			if disk != "" {
				w.must(device.Detach(w.context(), disk, patience))
			}
			w.wantNothingLeft()
		})
	}
}

// The staging path is already empty, and a target still shows the volume.
func TestRecordLostAfterUnmount(t *testing.T) {
	lostAfterUnmount(t, backends.SingleNodeMultiWriter,
		func(w *world, staging node.StageRequest, publishing node.PublishRequest) {
			w.refusesToUnstage(staging, publishing.TargetPath, true)
			w.unpublish(publishing)
		})
}

// placeOf returns where a staged volume shows.
func (w *world) placeOf(r node.StageRequest) string {
	if r.Use.Type == backends.Block {
		return r.StagingPath + "/device"
	}
	return r.StagingPath
}

// The directory is the root of its own filesystem. Where that is mounted is not where the volume is published.
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

// A disk's filesystem is still mounted in another mount namespace. After the unmount in this one nobody can tell from
// here which disk it was. A repeated call is refused too.
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

// As before; then the disk goes, and another volume's disk gets its number. Use of the second disk does not keep the
// first volume from being unstaged.
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

// The server of a directory is dead and the record lost. The kernel knows what shows in the staging path.
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

// sharing returns a node with two volumes that are one export. All mounts of sysfs are of one filesystem, which is on
// no device.
func sharing(t *testing.T, noteless bool) *world {
	t.Helper()
	needRoot(t)
	stall.Apart(t)
	w := makeWorld(t, &world{noteless: noteless})
	for _, name := range []string{"a", "b"} {
		w.shelf.sources[name] = backends.Export{FSType: "sysfs", Source: "share"}
	}
	return w
}

// Two volumes are one export, as two static ones may be, and their records are lost. Each is unstaged while the other
// shows.
func TestRecordsLostOfOneExport(t *testing.T) {
	w := sharing(t, true)
	a, b := w.stageRequest("a"), w.stageRequest("b")
	w.stage(a)
	w.stage(b)
	w.amnesia()
	w.unstage(a)
	w.unstage(b)
	w.wantNothingLeft()
}

// As before, and one of them is staged once more. What shows of the other volume does not block it, and is unpublished
// and unstaged under the other's name.
func TestAdoptedPathsAreGivenBack(t *testing.T) {
	w := sharing(t, true)
	a, b := w.stageRequest("a"), w.stageRequest("b")
	showA, showB := w.publishRequest("a"), w.publishRequest("b")
	w.stage(a)
	w.stage(b)
	w.publish(showA)
	w.publish(showB)
	w.amnesia()
	w.stage(a)
	w.publish(showA)
	w.unpublish(showA)
	w.unstage(a)
	if left := w.records().Get("a"); !left.Empty() {
		t.Errorf("what was unstaged has the record %+v", left)
	}
	w.stage(a)
	w.unpublish(showB)
	if w.inspect(showB.TargetPath).Exists {
		t.Errorf("what was unpublished is still there; mounted is %v", w.mounts())
	}
	w.unstage(b)
	w.unstage(a)
	w.wantNothingLeft()
}

// The backend notes the use of two volumes that are one export. A path adopted for one volume belongs to the other once
// the other is used again.
func TestAdoptedPathsAreTheOthers(t *testing.T) {
	w := sharing(t, false)
	a, b := w.stageRequest("a"), w.stageRequest("b")
	show := w.publishRequest("b")
	w.stage(a)
	w.stage(b)
	w.publish(show)
	w.amnesia()
	w.stage(a)
	w.want(w.service.Unstage(w.context(), "a", a.StagingPath), backends.InUse, show.TargetPath)
	w.stage(b)
	w.publish(show)
	w.unstage(a)
	w.unpublish(show)
	w.unstage(b)
	w.wantNothingLeft()
}

// Two volumes are one export, and one record is lost: a path recorded for the other volume is not adopted.
func TestOneRecordLostOfOneExport(t *testing.T) {
	for _, again := range []bool{false, true} {
		w := sharing(t, false)
		a, b := w.stageRequest("a"), w.stageRequest("b")
		show := w.publishRequest("b")
		w.stage(a)
		w.stage(b)
		w.publish(show)
		w.forgetRecord("a")
		if again {
			w.stage(a)
		}
		w.unstage(a)
		w.unpublish(show)
		w.unstage(b)
		w.wantNothingLeft()
	}
}

// forgetRecord removes the record of one volume, and restarts the service.
func (w *world) forgetRecord(volume string) {
	w.Helper()
	w.must(w.records().Drop(ledger.Record{Volume: volume}))
	w.restart()
}

// A pod uses a volume whose record was lost. For now the volume cannot be grown or measured. The error never says that
// it does not exist, because that would be final.
func TestRecordLostOfWhatIsGrown(t *testing.T) {
	w := newWorld(t)
	w.image("v", 16)
	staging, publishing := w.stageRequest("v"), w.publishRequest("v")
	w.stage(staging)
	w.publish(publishing)
	w.amnesia()
	_, err := w.service.Expand(w.context(), node.ExpandRequest{Volume: "v", Path: publishing.TargetPath})
	w.want(err, backends.Unavailable, publishing.TargetPath, "staged anew")
	w.stage(staging)
	_, err = w.service.Expand(w.context(), node.ExpandRequest{Volume: "v", Path: publishing.TargetPath})
	w.must(err)
	w.unpublish(publishing)
	w.unstage(staging)
	_, err = w.service.Expand(w.context(), node.ExpandRequest{Volume: "v", Path: publishing.TargetPath})
	w.want(err, backends.NotFound)
	w.wantNothingLeft()
}

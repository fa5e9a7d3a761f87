package node_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node"
	"github.com/stowage-csi/stowage/pkg/node/device"
	"github.com/stowage-csi/stowage/pkg/node/ledger"
)

// records opens the service's ledger, to write what a call would have written before it was killed.
func (w *world) records() *ledger.Ledger {
	w.Helper()
	boot, err := ledger.BootID()
	w.must(err)
	l, _, err := ledger.Open(w.context(), w.path("state"), boot, nil)
	w.must(err)
	return l
}

// intend records what Stage records before it mounts anything.
func (w *world) intend(r node.StageRequest, source ledger.Source) {
	w.Helper()
	w.must(w.records().Put(ledger.Record{Volume: r.Volume, Staged: &ledger.Staging{
		Path: r.StagingPath, Type: r.Use.Type, Mode: r.Use.Mode, Pending: true, Source: source,
	}}))
	w.restart()
}

// leftover is a state in which a killed call can have left a volume.
type leftover struct {
	name  string
	block bool
	make  func(w *world, image string, r node.StageRequest)
}

func leftovers() []leftover {
	source := func(image string) ledger.Source {
		return ledger.Source{Kind: ledger.Device, Path: image, Image: true}
	}
	return []leftover{
		{"recorded, nothing done", false, func(w *world, image string, r node.StageRequest) {
			w.intend(r, source(image))
		}},
		{"mounted, staging unfinished", false, func(w *world, image string, r node.StageRequest) {
			w.stage(r)
			w.intend(r, source(image))
		}},
		{"mounted, record lost", false, func(w *world, _ string, r node.StageRequest) {
			w.stage(r)
			w.amnesia()
		}},
		{"recorded, mount lost", false, func(w *world, _ string, r node.StageRequest) {
			w.stage(r)
			w.detach(r.StagingPath)
		}},
		{"corrupted", false, func(w *world, _ string, r node.StageRequest) {
			w.stage(r)
			w.detach(r.StagingPath)
			w.corrupt(r.StagingPath)
		}},
		{"loop device kept", false, func(w *world, image string, r node.StageRequest) {
			w.attach(image)
			w.intend(r, source(image))
		}},
		{"recorded, nothing done", true, func(w *world, image string, r node.StageRequest) {
			w.intend(r, source(image))
		}},
		{"attached, not bound", true, func(w *world, image string, r node.StageRequest) {
			w.attach(image)
			w.intend(r, source(image))
		}},
		{"attached, file made, not bound", true, func(w *world, image string, r node.StageRequest) {
			w.attach(image)
			w.write(filepath.Join(r.StagingPath, "device"), "")
			w.intend(r, source(image))
		}},
		{"attached, record lost", true, func(w *world, image string, _ node.StageRequest) {
			w.attach(image)
		}},
		{"bound, record lost", true, func(w *world, _ string, r node.StageRequest) {
			w.stage(r)
			w.amnesia()
		}},
		{"bound, staging unfinished", true, func(w *world, image string, r node.StageRequest) {
			w.stage(r)
			w.intend(r, source(image))
		}},
		{"unbound, not detached", true, func(w *world, _ string, r node.StageRequest) {
			w.stage(r)
			w.detach(filepath.Join(r.StagingPath, "device"))
		}},
		{"detached behind its back", true, func(w *world, image string, r node.StageRequest) {
			w.stage(r)
			w.must(device.Detach(w.context(), image, patience))
		}},
	}
}

// attach attaches an image to a persistent loop device, and returns the device's path.
func (w *world) attach(image string) string {
	w.Helper()
	opened, err := device.Open(w.context(), backends.Device{Path: image, Image: true}, device.Options{Persistent: true})
	w.must(err)
	w.must(opened.Close())
	return opened.Path
}

// Whatever a killed call left, staging again leads to the volume, and unstaging to nothing.
func TestLeftovers(t *testing.T) {
	for _, left := range leftovers() {
		kind := backends.Mount
		if left.block {
			kind = backends.Block
		}
		for _, way := range []string{"stage", "unstage"} {
			t.Run(string(kind)+", "+left.name+", "+way, func(t *testing.T) {
				w := newWorld(t)
				image := w.image("v", 16)
				staging, publishing := w.stageRequest("v"), w.publishRequest("v")
				staging.Use.Type, publishing.Use.Type = kind, kind
				left.make(w, image, staging)
				if way == "stage" {
					for range 2 {
						w.stage(staging)
						w.publish(publishing)
					}
					if mounts, loops := w.mounts(), w.loops(); len(mounts) != 2 || len(loops) != 1 {
						t.Errorf("mounted are %v over %v, want one staging, one target and one device", mounts, loops)
					}
					w.unpublish(publishing)
				}
				for range 2 {
					w.unstage(staging)
				}
				w.wantNothingLeft()
			})
		}
	}
}

func TestDirectoryAndExportLeftovers(t *testing.T) {
	for _, form := range forms()[3:] {
		for name, leave := range map[string]func(w *world, r node.StageRequest){
			"record lost": func(w *world, _ node.StageRequest) { w.amnesia() },
			"mount lost":  func(w *world, r node.StageRequest) { w.detach(r.StagingPath) },
			"corrupted": func(w *world, r node.StageRequest) {
				w.detach(r.StagingPath)
				w.corrupt(r.StagingPath)
			},
		} {
			t.Run(form.name+", "+name, func(t *testing.T) {
				w := newWorld(t)
				form.make(w, "v")
				staging, publishing := w.stageRequest("v"), w.publishRequest("v")
				w.stage(staging)
				leave(w, staging)
				for range 2 {
					w.stage(staging)
					w.publish(publishing)
				}
				if len(w.mounts()) != 2 {
					t.Errorf("mounted are %v", w.mounts())
				}
				w.unpublish(publishing)
				leave(w, staging)
				w.unstage(staging)
				w.wantNothingLeft()
			})
		}
	}
}

func TestPublishLeftovers(t *testing.T) {
	for name, leave := range map[string]func(w *world, r node.PublishRequest){
		"target made, not mounted": func(w *world, r node.PublishRequest) {
			w.mkdir(r.TargetPath)
		},
		"mounted, not recorded": func(w *world, r node.PublishRequest) {
			w.mkdir(r.TargetPath)
			w.bind(r.StagingPath, r.TargetPath)
		},
		"recorded, not mounted": func(w *world, r node.PublishRequest) {
			w.publish(r)
			w.detach(r.TargetPath)
		},
		"recorded, no target": func(w *world, r node.PublishRequest) {
			w.publish(r)
			w.detach(r.TargetPath)
			w.must(os.Remove(r.TargetPath))
		},
		"published, record lost": func(w *world, r node.PublishRequest) {
			w.publish(r)
			w.amnesia()
			w.stage(w.stageRequest(r.Volume))
		},
		"corrupted": func(w *world, r node.PublishRequest) {
			w.mkdir(r.TargetPath)
			w.corrupt(r.TargetPath)
		},
		"published before the volume was staged anew": func(w *world, r node.PublishRequest) {
			w.publish(r)
			w.detach(r.StagingPath)
			w.shelf.sources[r.Volume] = backends.Directory{Path: w.mkdir(w.path("directories", "anew"))}
			w.stage(w.stageRequest(r.Volume))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.directory("v")
			staging, publishing := w.stageRequest("v"), w.publishRequest("v")
			w.stage(staging)
			leave(w, publishing)
			w.restart()
			for range 2 {
				w.publish(publishing)
			}
			if len(w.mounts()) != 2 || !w.inspect(publishing.TargetPath).SameRoot(w.inspect(staging.StagingPath)) {
				t.Errorf("mounted are %v, or not the volume", w.mounts())
			}
			w.unpublish(publishing)
			leave(w, publishing)
			for range 2 {
				w.unpublish(publishing)
			}
			w.unstage(staging)
			w.wantNothingLeft()
		})
	}
}

// All layers of stacked mounts are unmounted, at the staging path and at the target.
func TestStackedMounts(t *testing.T) {
	w := newWorld(t)
	w.directory("v")
	staging, publishing := w.stageRequest("v"), w.publishRequest("v")
	w.stage(staging)
	w.publish(publishing)
	for range 3 {
		w.stack(publishing.TargetPath)
	}
	w.want(w.service.Unstage(w.context(), "v", staging.StagingPath), backends.InUse, publishing.TargetPath)
	w.unpublish(publishing)
	for range 2 {
		w.stack(staging.StagingPath)
	}
	w.want(w.service.Publish(w.context(), publishing), backends.InUse, "call NodeStageVolume first")
	w.unstage(staging)
	w.wantNothingLeft()
}

// mkfs was killed in the middle: the device is not blank, and only the mark on it says that it holds no data. A node
// that takes over knows only what the device says.
func TestFormattingCutShort(t *testing.T) {
	for _, test := range []struct {
		name, volume, fsType string
		says                 string // part of the error; empty for success
	}{
		{"the same volume", "v", "ext4", ""},
		{"the same volume, any filesystem", "v", "", ""},
		{"as another filesystem", "v", "xfs", "as ext4 for volume"},
		{"another volume, with a copy", "u", "ext4", "for volume \"v\""},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			image := w.image("v", 310)
			dying(w)
			w.want(w.service.Stage(w.context(), w.stageRequest("v")), backends.Unknown, "format", "mkfs.ext4")
			w.must(unix.Unmount(mkfsPath(w, "ext4"), unix.MNT_DETACH))
			w.amnesia()
			if test.volume != "v" {
				w.must(os.Rename(image, w.image(test.volume, 310)))
			}
			staging := w.stageRequest(test.volume)
			staging.Use.FSType = test.fsType
			readers := staging
			readers.Use.Mode = backends.MultiNodeReaderOnly
			w.want(w.service.Stage(w.context(), readers), backends.Invalid)
			err := w.service.Stage(w.context(), staging)
			if test.says != "" {
				w.want(err, backends.Invalid, "unknown data", test.says)
				w.wantNothingLeft()
				return
			}
			w.must(err)
			w.unstage(staging)
			w.wantNothingLeft()
		})
	}
}

// mkfsPath returns the program behind a mkfs.
func mkfsPath(w *world, fsType string) string {
	w.Helper()
	path, err := filepath.EvalSymlinks("/usr/sbin/mkfs." + fsType)
	w.must(err)
	return path
}

// dying replaces mkfs.ext4 by a program that writes something to the device and is then killed.
func dying(w *world) {
	w.Helper()
	script := w.path("dying")
	w.must(os.WriteFile(script,
		[]byte("#!/bin/sh\nfor device; do :; done\nyes half | dd bs=4k count=9 conv=notrunc iflag=fullblock of=$device "+
			"status=none\nkill -9 $$\n"), 0o700))
	w.bind(script, mkfsPath(w, "ext4"))
	w.Cleanup(func() { _ = unix.Unmount(mkfsPath(w, "ext4"), unix.MNT_DETACH) }) // most tests have done so
}

// A format that fails leaves only the intent, so that the next call may resume.
func TestFormattingFails(t *testing.T) {
	w := newWorld(t)
	image := w.image("v", 16)
	staging := w.stageRequest("v")
	staging.Use.FSType = "xfs"
	w.want(w.service.Stage(w.context(), staging), backends.OutOfRange, "format", "xfs")
	if len(w.mounts()) != 0 || !eventually(func() bool { return len(w.loops()) == 0 }) {
		t.Errorf("left are %v and %v", w.mounts(), w.loops())
	}
	w.must(os.Truncate(image, 310<<20))
	w.stage(staging)
	w.unstage(staging)
	w.wantNothingLeft()
}

// The filesystem of a device is still mounted at a place that the ledger does not know.
func TestUnstageWhileMountedElsewhere(t *testing.T) {
	for _, name := range []string{"image", "device"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			image := w.image("v", 16)
			elsewhere := w.mkdir(w.path("elsewhere"))
			if name == "device" {
				w.shelf.sources["v"] = backends.Device{Path: w.attach(image)}
			}
			staging := w.stageRequest("v")
			w.stage(staging)
			w.bind(staging.StagingPath, elsewhere)
			w.service.DetachWithin(briefly)
			for range 2 {
				w.want(w.service.Unstage(w.context(), "v", staging.StagingPath), backends.InUse, "/dev/loop",
					"it is mounted at "+elsewhere)
			}
			w.service.DetachWithin(patience)
			if len(w.shelf.released) != 0 {
				t.Error("released while it is in use")
			}
			w.detach(elsewhere)
			w.unstage(staging)
			w.must(device.Detach(w.context(), image, patience))
			w.wantNothingLeft()
		})
	}
}

// The volume was deleted, and its image with it, before it was unstaged.
func TestUnstageOfADeletedVolume(t *testing.T) {
	for _, lost := range []bool{false, true} {
		w := newWorld(t)
		image := w.image("v", 16)
		staging := w.stageRequest("v")
		staging.Use.Type = backends.Block
		w.stage(staging)
		w.must(os.Remove(image))
		delete(w.shelf.sources, "v")
		if lost {
			w.amnesia()
		}
		w.unstage(staging)
		w.wantNothingLeft()
	}
}

// As before, with the record lost; but the loop device was detached behind the driver, and its number is that of
// another program's device, whose file was deleted. Its contents exist nowhere else.
func TestDeletedFileOfAnotherStays(t *testing.T) {
	w := newWorld(t)
	image, other := w.image("v", 16), w.image("other", 16)
	staging := w.stageRequest("v")
	staging.Use.Type = backends.Block
	w.stage(staging)
	loop := fmt.Sprintf("/dev/loop%d", unix.Minor(w.inspect(w.placeOf(staging)).Rdev))
	w.replace(loop, image, other)
	w.must(os.Remove(image))
	w.must(os.Remove(other))
	delete(w.shelf.sources, "v")
	w.amnesia()
	w.unstage(staging)
	if got, want := w.loops(), []string{loop + " " + other + " (deleted)"}; !slices.Equal(got, want) {
		t.Errorf("the loop devices are %q, want %q", got, want)
	}
	w.must(device.Detach(w.context(), other, patience))
	w.wantNothingLeft()
}

// A device of the node that is not an image is never detached.
func TestDeviceOfTheNode(t *testing.T) {
	w := newWorld(t)
	image := w.image("v", 16)
	link := w.path("by-id")
	w.must(os.Symlink(w.attach(image), link))
	w.shelf.sources["v"] = backends.Device{Path: link, Identity: backends.Identity{SizeBytes: 16 << 20}, ReadAheadKiB: 256}
	for _, kind := range []backends.AccessType{backends.Mount, backends.Block} {
		staging, publishing := w.stageRequest("v"), w.publishRequest("v")
		staging.Use.Type, publishing.Use.Type = kind, kind
		for range 2 {
			w.stage(staging)
			w.publish(publishing)
			w.amnesia()
		}
		w.unpublish(publishing)
		w.unstage(staging)
		if len(w.loops()) != 1 {
			t.Errorf("after %s the device is gone", kind)
		}
	}
	w.shelf.sources["v"] = backends.Device{Path: link, Identity: backends.Identity{SizeBytes: 17 << 20}}
	w.want(w.service.Stage(w.context(), w.stageRequest("v")), backends.Unavailable, "prove", link)
	w.must(device.Detach(w.context(), image, patience))
	w.want(w.service.Stage(w.context(), w.stageRequest("v")), backends.Unavailable, "prove")
	w.wantNothingLeft()
}

// Records of another boot say nothing, and unreadable ones do not prevent the start.
func TestLedgerAfterARestartOfTheMachine(t *testing.T) {
	w := newWorld(t)
	w.directory("v")
	l, _, err := ledger.Open(w.context(), w.path("state"), "another boot", nil)
	w.must(err)
	w.must(l.Put(ledger.Record{Volume: "v", Staged: &ledger.Staging{Path: "/elsewhere", Type: backends.Mount}}))
	w.write(w.path("state", "garbage.json"), "{")
	w.restart()
	staging := w.stageRequest("v")
	w.stage(staging)
	w.unstage(staging)
	w.must(os.Remove(w.path("state", "garbage.json.unreadable")))
	w.wantNothingLeft()
}

// The record of a volume cannot be read, as after an I/O error. The service starts, and serves all other volumes. The
// volume itself can be unpublished, and all else once the record can be read.
func TestRecordThatCannotBeRead(t *testing.T) {
	w := newWorld(t)
	w.directory("v")
	w.directory("other")
	staging, publishing := w.stageRequest("v"), w.publishRequest("v")
	w.stage(staging)
	w.publish(publishing)
	record, mend := w.hideRecord()
	for range 2 {
		w.want(w.service.Stage(w.context(), staging), backends.Unavailable, record, "mend the disk")
		w.want(w.service.Publish(w.context(), publishing), backends.Unavailable, record)
		w.want(w.service.Unstage(w.context(), "v", staging.StagingPath), backends.Unavailable, record)
		w.want(w.service.CheckUnused(w.context(), "v"), backends.Unavailable, record)
	}
	if used := w.service.InUse(w.context(), "v"); !strings.Contains(used, record) {
		t.Errorf("the use of the volume is %q", used)
	}
	w.stage(w.stageRequest("other"))
	w.unstage(w.stageRequest("other"))
	w.unpublish(publishing)
	mend()
	w.unstage(staging)
	w.wantNothingLeft()
}

// hideRecord makes the only record of the node unreadable and restarts the service. mend undoes that.
func (w *world) hideRecord() (record string, mend func()) {
	w.Helper()
	records, err := filepath.Glob(w.path("state", "*.json"))
	w.must(err)
	if len(records) != 1 {
		w.Fatalf("the records are %v", records)
	}
	record = records[0]
	w.must(os.Rename(record, record+".kept"))
	w.must(os.Symlink(record, record))
	w.restart()
	return record, func() {
		w.Helper()
		w.must(os.Remove(record))
		w.must(os.Rename(record+".kept", record))
	}
}

// A volume without a record is unstaged at the path of another one whose record cannot be read. That one stays.
func TestUnstageOfWhatIsUnknown(t *testing.T) {
	for _, kind := range []backends.AccessType{backends.Mount, backends.Block} {
		w := newWorld(t)
		w.image("v", 16)
		w.directory("other")
		staging, elsewhere := w.stageRequest("v"), w.stageRequest("other")
		staging.Use.Type = kind
		w.stage(staging)
		record, mend := w.hideRecord()
		for range 2 {
			w.want(w.service.Unstage(w.context(), "other", staging.StagingPath), backends.Unavailable, record,
				w.placeOf(staging))
			w.stage(elsewhere)
		}
		w.unstage(elsewhere)
		mend()
		w.unstage(staging)
		w.wantNothingLeft()
	}
}

// After an operator moves a raw volume's image while it is staged, unstaging still frees the loop device.
func TestImageIsMoved(t *testing.T) {
	for name, move := range map[string]func(w *world, image string){
		"renamed":        func(w *world, image string) { w.must(os.Rename(image, image+".moved")) },
		"in a directory": func(w *world, image string) { w.must(os.Rename(filepath.Dir(image), w.path("moved"))) },
		"replaced": func(w *world, image string) {
			w.must(os.Rename(image, image+".moved"))
			w.image("v", 16)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			image := w.image("v", 16)
			staging := w.stageRequest("v")
			staging.Use.Type = backends.Block
			w.stage(staging)
			t.Cleanup(func() { _ = device.Detach(w.context(), image+".moved", patience) })
			move(w, image)
			w.restart()
			w.unstage(staging)
			w.wantNothingLeft()
		})
	}
}

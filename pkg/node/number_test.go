package node_test

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node/device"
)

// replace detaches the image of a loop device and attaches another one to it. If somebody else takes the device in
// between, it is tried again.
func (w *world) replace(loop, before, image string) {
	w.Helper()
	w.must(device.Detach(w.context(), before, patience))
	file, err := os.OpenFile(image, os.O_RDWR, 0)
	w.must(err)
	defer file.Close()
	held, err := os.OpenFile(loop, os.O_RDWR, 0)
	w.must(err)
	defer held.Close()
	if !eventually(func() bool {
		return unix.IoctlLoopConfigure(int(held.Fd()), &unix.LoopConfig{Fd: uint32(file.Fd())}) == nil
	}) {
		w.Fatalf("%s cannot be attached again", loop)
	}
}

// The disk of a volume goes, and another volume's gets its number. The first one's record excuses nothing of what the
// second is used for: that is not unstaged while it is mounted elsewhere. Nor does the second's use keep the first from
// being unstaged.
func TestStaleRecordExcusesNoClaim(t *testing.T) {
	w := newWorld(t)
	first, second := w.image("a", 16), w.image("b", 16)
	loop := w.attach(first)
	w.shelf.sources["a"], w.shelf.sources["b"] = backends.Device{Path: loop}, backends.Device{Path: loop}
	gone, staging := w.stageRequest("a"), w.stageRequest("b")
	w.stage(gone)
	w.must(unix.Unmount(gone.StagingPath, 0))
	w.replace(loop, first, second)

	w.stage(staging)
	elsewhere := w.mkdir(w.path("elsewhere"))
	w.bind(staging.StagingPath, elsewhere)
	for range 2 {
		w.want(w.service.Unstage(w.context(), "b", staging.StagingPath), backends.InUse,
			loop+" is still mounted somewhere else")
		w.restart()
	}
	w.unstage(gone) // its own disk is gone, whoever uses the number
	w.want(w.service.Unstage(w.context(), "b", staging.StagingPath), backends.InUse, loop)
	w.must(unix.Unmount(elsewhere, 0))
	w.unstage(staging)
	w.must(device.Detach(w.context(), second, patience))
	w.wantNothingLeft()
}

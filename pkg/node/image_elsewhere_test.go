package node_test

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// The filesystem of an image was unmounted behind the driver, and the image is mounted from another loop device. The
// volume's own loop device is free. The volume is not unstaged while the image is in use.
func TestImageIsMountedFromAnotherLoopDevice(t *testing.T) {
	w := newWorld(t)
	image := w.image("v", 16)
	staging := w.stageRequest("v")
	w.stage(staging)
	own := fmt.Sprintf("/dev/loop%d", unix.Minor(w.inspect(staging.StagingPath).Dev))
	w.must(unix.Unmount(staging.StagingPath, 0))
	if !eventually(func() bool { return len(w.loops()) == 0 }) {
		t.Fatalf("attached is %v", w.loops())
	}
	var held *os.File // nobody attaches a file to a claimed device
	if !eventually(func() (claimed bool) {
		var err error
		held, err = os.OpenFile(own, os.O_RDWR|unix.O_EXCL, 0)
		return err == nil
	}) {
		t.Fatalf("%s cannot be claimed", own)
	}
	defer held.Close()
	other, elsewhere := w.attach(image), w.mkdir(w.path("elsewhere"))
	if !eventually(func() bool { return unix.Mount(other, elsewhere, "ext4", 0, "") == nil }) {
		t.Fatalf("%s cannot be mounted", other)
	}
	w.service.DetachWithin(briefly)
	for range 2 {
		w.want(w.service.Unstage(w.context(), "v", staging.StagingPath), backends.InUse, other)
	}
	if !w.shelf.Used(w.context(), "v") || len(w.shelf.released) != 0 {
		t.Errorf("released is %v while the image is mounted", w.shelf.released)
	}
	w.must(unix.Unmount(elsewhere, 0))
	w.service.DetachWithin(patience)
	w.unstage(staging)
	w.wantNothingLeft()
}

package node_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node"
	"github.com/stowage-csi/stowage/pkg/node/device"
	"github.com/stowage-csi/stowage/pkg/node/ledger"
	"github.com/stowage-csi/stowage/tests/stall"
)

// replace detaches the image of a loop device and attaches another one to it. It retries if another process takes the
// device in between.
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

// The disk of a volume goes, and another volume's disk gets its number. The first volume's record does not excuse use
// of the second disk: the second volume is not unstaged while it is mounted elsewhere. Nor does use of the second disk
// keep the first volume from being unstaged.
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

// An interrupted call recorded only the node of a volume's disk. The disk goes, and another volume's disk gets the
// node. Use of that disk does not keep the first volume from being unstaged.
func TestCutShortAndNumberUsedAgain(t *testing.T) {
	w := newWorld(t)
	first, second := w.image("a", 16), w.image("b", 16)
	loop := w.attach(first)
	w.shelf.sources["a"], w.shelf.sources["b"] = backends.Device{Path: loop}, backends.Device{Path: loop}
	gone, staging := w.stageRequest("a"), w.stageRequest("b")
	w.intend(gone, ledger.Source{Kind: ledger.Device, Path: loop})
	w.replace(loop, first, second)
	w.stage(staging)
	w.unstage(gone)
	w.unstage(staging)
	w.must(device.Detach(w.context(), second, patience))
	w.wantNothingLeft()
}

// A raw disk is in use while it is claimed, as by dm-crypt or LVM, even when its pod is gone.
func TestRawDiskIsClaimed(t *testing.T) {
	w := newWorld(t)
	image := w.image("v", 16)
	loop := w.attach(image)
	w.shelf.sources["v"] = backends.Device{Path: loop}
	staging := w.stageRequest("v")
	staging.Use.Type = backends.Block
	w.stage(staging)
	claim, err := unix.Open(loop, unix.O_RDONLY|unix.O_EXCL|unix.O_CLOEXEC, 0)
	w.must(err)
	for range 2 {
		w.want(w.service.Unstage(w.context(), "v", staging.StagingPath), backends.InUse, loop, "dm-crypt")
	}
	w.must(unix.Close(claim))
	w.unstage(staging)
	w.must(device.Detach(w.context(), image, patience))
	w.wantNothingLeft()
}

// A raw image is published, and its staging path shows nothing any more. Its loop device stays with the pod, whatever
// is requested. If freed, the next image would get its number.
func TestLoopDeviceOfWhatIsPublishedStays(t *testing.T) {
	for name, ask := range map[string]func(w *world, staging *node.StageRequest){
		"staging fails": func(w *world, _ *node.StageRequest) {
			source := w.shelf.sources["v"].(backends.Device)
			source.ReadAheadKiB = -1
			w.shelf.sources["v"] = source
		},
		"in another way": func(_ *world, staging *node.StageRequest) { staging.Use.Mode = backends.SingleNodeReaderOnly },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.image("v", 16)
			staging, publishing := w.stageRequest("v"), w.publishRequest("v")
			staging.Use.Type, publishing.Use.Type = backends.Block, backends.Block
			source := w.shelf.sources["v"]
			w.stage(staging)
			w.publish(publishing)
			before, device := w.loops(), w.inspect(publishing.TargetPath).Rdev
			w.detach(w.placeOf(staging))
			other := staging
			ask(w, &other)
			if err := w.service.Stage(w.context(), other); err == nil {
				t.Error("it is staged: nothing is shown by this")
			}
			if now := w.loops(); !slices.Equal(now, before) || w.inspect(publishing.TargetPath).Rdev != device {
				t.Errorf("loop devices were %q, and are %q", before, now)
			}
			w.shelf.sources["v"] = source
			w.stage(staging)
			w.unpublish(publishing)
			w.unstage(staging)
			w.wantNothingLeft()
		})
	}
}

// A process that can open no more files cannot ask whether a device is mounted elsewhere. The device must not count as
// free then: a cloud would detach it.
func TestUnaskedDeviceIsNotFree(t *testing.T) {
	w := newWorld(t)
	loop := w.attach(w.image("a", 16))
	claim, err := unix.Open(loop, unix.O_RDONLY|unix.O_EXCL|unix.O_CLOEXEC, 0)
	w.must(err)
	defer unix.Close(claim)
	source := ledger.Source{Kind: ledger.Device, Path: loop}
	w.want(w.service.CheckUnclaimed(source), backends.InUse, loop)
	err = withoutFiles(w, func() error { return w.service.CheckUnclaimed(source) })
	w.want(err, backends.Unavailable, "cannot tell whether "+loop)
}

// withoutFiles makes a call while this process can open no more files.
func withoutFiles(w *world, call func() error) error {
	w.Helper()
	var before unix.Rlimit
	w.must(unix.Getrlimit(unix.RLIMIT_NOFILE, &before))
	w.must(unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 0, Max: before.Max}))
	defer func() { w.must(unix.Setrlimit(unix.RLIMIT_NOFILE, &before)) }()
	return call()
}

// The number of a removed disk is given to one that does not answer: opening that one waits for its server.
func TestUnstageOpensNoStranger(t *testing.T) {
	server := stall.Serve(t)
	w := newServedWorld(t)
	slow := filepath.Join(server.Dir, "slow")
	w.must(os.WriteFile(filepath.Join(server.Real, "slow"), nil, 0o600))
	w.must(os.Truncate(filepath.Join(server.Real, "slow"), 16<<20))
	image := w.image("a", 16)
	loop := w.attach(image)
	w.shelf.sources["a"] = backends.Device{Path: loop}
	staging := w.stageRequest("a")
	w.stage(staging)
	w.must(unix.Unmount(staging.StagingPath, 0))
	w.must(device.Detach(w.context(), image, patience))

	file, err := os.OpenFile(slow, os.O_RDWR, 0)
	w.must(err)
	held, err := os.OpenFile(loop, os.O_RDWR, 0)
	w.must(err)
	server.StopAt(t, stall.Attribute, 1) // The kernel asks for the size of the image, and keeps the device meanwhile.
	attached := make(chan struct{})
	go func() {
		defer close(attached)
		_ = unix.IoctlLoopConfigure(int(held.Fd()), &unix.LoopConfig{Fd: uint32(file.Fd()), // it fails if it is interrupted
			Info: unix.LoopInfo64{Flags: unix.LO_FLAGS_AUTOCLEAR}})
	}()
	t.Cleanup(func() {
		server.Continue(t)
		<-attached
		_, _ = held.Close(), file.Close() // which clears it
	})
	if !eventually(func() bool {
		select {
		case <-attached: // by a kernel that does not ask
			return true
		default:
			return server.Stopped(t)
		}
	}) {
		t.Fatal("the device is neither attached nor is the server asked")
	}
	ctx, cancel := context.WithTimeout(w.context(), patience)
	defer cancel()
	w.must(w.service.Unstage(ctx, "a", staging.StagingPath))
}

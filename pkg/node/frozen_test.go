package node_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node"
	"github.com/stowage-csi/stowage/pkg/node/device"
)

// freeze stops all writes to the filesystem at a path, as for a snapshot, until it is thawed.
func (w *world) freeze(path string) (thaw func()) {
	w.Helper()
	const fiFreeze, fiThaw = 0xc0045877, 0xc0045878 // linux/fs.h
	root, err := os.Open(path)
	w.must(err)
	w.must(unix.IoctlSetInt(int(root.Fd()), fiFreeze, 0))
	w.must(root.Close())
	thawed := false
	thaw = func() {
		if thawed {
			return
		}
		thawed = true
		root, err := os.Open(path)
		w.must(err)
		w.must(unix.IoctlSetInt(int(root.Fd()), fiThaw, 0))
		w.must(root.Close())
	}
	w.Cleanup(thaw)
	return thaw
}

// opened counts the open files of this process below a path.
func (w *world) opened(path string) (count int) {
	w.Helper()
	links, err := os.ReadDir("/proc/self/fd")
	w.must(err)
	for _, link := range links {
		if to, err := os.Readlink("/proc/self/fd/" + link.Name()); err == nil && strings.HasPrefix(to, path) {
			count++
		}
	}
	return count
}

// A frozen filesystem does not grow before it is thawed. Repeated requests cost only one call in the kernel, and a
// caller that unstages the volume is told what it waits for.
func TestExpandFrozen(t *testing.T) {
	for _, fsType := range []string{"xfs", "btrfs"} {
		t.Run(fsType, func(t *testing.T) {
			w := newWorld(t)
			image := w.image("v", 300)
			staging := w.stageRequest("v")
			staging.Use.FSType = fsType
			w.stage(staging)
			w.must(os.Truncate(image, 600<<20))
			thaw := w.freeze(staging.StagingPath)
			expand := func(ctx context.Context) error {
				_, err := w.service.Expand(ctx, node.ExpandRequest{Volume: "v", Path: staging.StagingPath})
				return err
			}
			w.want(w.until(func() bool { return w.opened(staging.StagingPath) == 1 }, expand), backends.Unavailable, "growing")
			for range 30 {
				w.want(expand(w.context()), backends.Unavailable, "growing", "was given up")
			}
			if hung, open := w.service.GivenUp(), w.opened(staging.StagingPath); hung != 1 || open != 1 {
				t.Errorf("%d calls hang and have %d descriptors, want one", hung, open)
			}
			w.want(w.service.Unstage(w.context(), "v", staging.StagingPath), backends.Unavailable, "growing", "was given up")
			thaw()
			if !eventually(func() bool { return w.service.GivenUp() == 0 }) {
				t.Error("a call hangs although the filesystem is thawed")
			}
			size, err := w.service.Expand(w.context(), node.ExpandRequest{Volume: "v", Path: staging.StagingPath})
			w.must(err)
			stats, err := w.service.Stats(w.context(), "v", staging.StagingPath)
			w.must(err)
			if size != 600<<20 || stats.Bytes.Total < 400<<20 {
				t.Errorf("the device has %d bytes, the filesystem %d", size, stats.Bytes.Total)
			}
			w.unstage(staging)
			w.wantNothingLeft()
		})
	}
}

// The disk of a volume goes, and another volume's disk gets its number. A growth of the second volume that hangs does
// not keep the first from being unstaged.
func TestGrowthOfAnotherKeepsNothing(t *testing.T) {
	w := newWorld(t)
	first, second := w.image("a", 16), w.image("b", 300)
	loop := w.attach(first)
	w.shelf.sources["a"], w.shelf.sources["b"] = backends.Device{Path: loop}, backends.Device{Path: loop}
	gone, staging := w.stageRequest("a"), w.stageRequest("b")
	staging.Use.FSType = "xfs"
	w.stage(gone)
	w.must(unix.Unmount(gone.StagingPath, 0))
	w.replace(loop, first, second)
	w.stage(staging)
	w.must(os.Truncate(second, 600<<20))
	thaw := w.freeze(staging.StagingPath)
	err := w.until(func() bool { return w.opened(staging.StagingPath) == 1 }, func(ctx context.Context) error {
		_, err := w.service.Expand(ctx, node.ExpandRequest{Volume: "b", Path: staging.StagingPath})
		return err
	})
	w.want(err, backends.Unavailable, "growing")
	if hung := w.service.GivenUp(); hung != 1 {
		t.Fatalf("%d calls hang, want the growth: nothing is shown by this", hung)
	}
	w.unstage(gone)
	w.want(w.service.Unstage(w.context(), "b", staging.StagingPath), backends.Unavailable, "growing", "was given up")
	thaw()
	if !eventually(func() bool { return w.service.GivenUp() == 0 }) {
		t.Error("a call hangs although the filesystem is thawed")
	}
	w.unstage(staging)
	w.must(device.Detach(w.context(), second, patience))
	w.wantNothingLeft()
}

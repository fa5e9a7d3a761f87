package node_test

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node"
	"github.com/stowage-csi/stowage/pkg/node/device"
	"github.com/stowage-csi/stowage/tests/testfs"
)

// The kernel remembers devices that it saw as parts of a btrfs on several devices, and looks them up by number before
// it compares UUIDs. It may give such a number to a clone. The clone is mounted beside its original all the same, and
// the remembered filesystem is not.
func TestCloneOnARememberedDevice(t *testing.T) {
	for name, commits := range map[string]int{"of an older filesystem": 0, "of a newer filesystem": 20} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			original, clone, other := w.image("original", 300), w.image("clone", 300), w.image("other", 300)
			w.twoDevices("btrfs", clone, other)
			w.remember(w.attach(clone), commits)
			first, second := w.btrfsRequest("original"), w.btrfsRequest("clone")
			w.stage(first)
			w.write(filepath.Join(first.StagingPath, "file"), "data")
			w.unstage(first)
			w.replaceContents(clone, original)
			before := checksum(t, other)

			w.stage(first)
			w.stage(second)
			w.wantContent(filepath.Join(second.StagingPath, "file"), "data")
			if checksum(t, other) != before {
				t.Error("the other device was written to")
			}
			w.unstage(first)
			w.unstage(second)
			for _, image := range []string{clone, other} {
				w.must(device.Detach(w.context(), image, patience))
			}
			w.wantNothingLeft()
		})
	}
}

// The kernel mounts only one of two seed filesystems with the same UUID. The answer says why, and what to do.
func TestCloneOfASeed(t *testing.T) {
	w := newWorld(t)
	original, clone := w.image("original", 300), w.image("clone", 300)
	first, second := w.btrfsRequest("original"), w.btrfsRequest("clone")
	w.stage(first)
	w.unstage(first)
	testfs.Run(w, "btrfstune", "-f", "-S", "1", original)
	w.replaceContents(clone, original)
	first.Use.Mode, second.Use.Mode = backends.SingleNodeReaderOnly, backends.SingleNodeReaderOnly
	w.stage(first)
	w.want(w.service.Stage(w.context(), second), backends.Unavailable, "another device with the same btrfs")
	w.unstage(first)
	w.stage(second)
	w.unstage(second)
	w.wantNothingLeft()
}

func (w *world) btrfsRequest(volume string) node.StageRequest {
	w.Helper()
	staging := w.stageRequest(volume)
	staging.Use.FSType = "btrfs"
	return staging
}

// remember has the kernel remember the device as a part of its btrfs, after that many further commits.
func (w *world) remember(path string, commits int) {
	w.Helper()
	testfs.Run(w, "btrfs", "device", "scan", path)
	place := w.mkdir(w.path("remembered"))
	w.must(unix.Mount(path, place, "btrfs", 0, ""))
	for i := range commits {
		w.write(filepath.Join(place, "file"), strconv.Itoa(i))
		root, err := os.Open(place)
		w.must(err)
		w.must(unix.Syncfs(int(root.Fd())))
		w.must(root.Close())
	}
	w.must(unix.Unmount(place, 0))
}

// replaceContents copies the contents of one image to another of the same size, attached or not.
func (w *world) replaceContents(image, from string) {
	w.Helper()
	data, err := os.ReadFile(from)
	w.must(err)
	file, err := os.OpenFile(image, os.O_WRONLY, 0)
	w.must(err)
	_, err = file.Write(data)
	w.must(err)
	w.must(file.Sync())
	w.must(file.Close())
}

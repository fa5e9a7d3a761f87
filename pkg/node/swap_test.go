package node_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node"
	"github.com/stowage-csi/stowage/pkg/node/device"
)

// A link that leads to another disk than before, or to none, stages nothing and changes nothing.
func TestStaleLink(t *testing.T) {
	w := newWorld(t)
	own, other := w.image("v", 32), w.image("other", 16)
	link := w.path("by-id")
	w.shelf.sources["v"] = backends.Device{Path: link, Identity: backends.Identity{SizeBytes: 32 << 20}}
	staging := w.stageRequest("v")
	otherDevice := w.attach(other)
	for name, lead := range map[string]string{"another disk": otherDevice, "no disk": "/dev/none-such"} {
		w.must(os.Symlink(lead, link))
		w.want(w.service.Stage(w.context(), staging), backends.Unavailable, link)
		if len(w.mounts()) != 0 {
			t.Errorf("%s: mounted is %v", name, w.mounts())
		}
		w.must(os.Remove(link))
	}
	w.must(os.Symlink(w.attach(own), link))
	w.stage(staging)
	w.wantZero(other)
	w.unstage(staging)
	w.must(device.Detach(w.context(), own, patience))
	w.must(device.Detach(w.context(), other, patience))
	w.wantNothingLeft()
}

// The link to the disk of a staged volume is missing for a moment, as while udev replaces it. The mount stays as it is.
// A link that leads to another disk is a reason to take it down.
func TestMissingLinkProvesNothing(t *testing.T) {
	for _, kind := range []backends.AccessType{backends.Mount, backends.Block} {
		t.Run(string(kind), func(t *testing.T) {
			w := newWorld(t)
			own, other := w.image("v", 16), w.image("other", 16)
			link := w.path("by-id")
			w.shelf.sources["v"] = backends.Device{Path: link}
			first, second := w.attach(own), w.attach(other)
			w.must(os.Symlink(first, link))
			staging := w.stageRequest("v")
			staging.Use.Type = kind
			w.stage(staging)
			before := w.inspect(w.placeOf(staging))
			w.must(os.Remove(link))
			for range 2 {
				w.want(w.service.Stage(w.context(), staging), backends.Unavailable, link, first)
				if state := w.inspect(w.placeOf(staging)); !state.SameRoot(before) || !state.Mounted {
					t.Errorf("mounted is %+v, want %+v", state, before)
				}
				w.restart()
			}
			w.must(os.Symlink(first, link))
			w.stage(staging)
			w.must(os.Remove(link))
			w.must(os.Symlink(second, link))
			w.stage(staging)
			if state := w.inspect(w.placeOf(staging)); state.SameRoot(before) {
				t.Error("what is mounted is still the earlier disk")
			}
			w.unstage(staging)
			w.must(device.Detach(w.context(), own, patience))
			w.must(device.Detach(w.context(), other, patience))
			w.wantNothingLeft()
		})
	}
}

// wantZero fails the test if anything was written to an image.
func (w *world) wantZero(image string) {
	w.Helper()
	var stat unix.Stat_t
	w.must(unix.Stat(image, &stat))
	if stat.Blocks != 0 {
		w.Errorf("%s takes %d blocks", image, stat.Blocks)
	}
}

// The node of the proven device becomes that of another device, or of none, between two phases: while mkfs works. Stage
// checks that the mount is on the proven device.
func TestDeviceIsSwapped(t *testing.T) {
	for _, test := range []struct{ name, fsType string }{
		{"another device", "ext4"}, {"another device", "xfs"}, {"another device", "btrfs"}, {"no device", "ext4"},
		{"no device", "btrfs"},
	} {
		t.Run(test.name+", "+test.fsType, func(t *testing.T) {
			w := newWorld(t)
			w.image("v", 300)
			other := w.image("other", 300)
			precious, staging := w.stageRequest("other"), w.stageRequest("v")
			precious.Use.FSType, staging.Use.FSType = test.fsType, test.fsType
			w.stage(precious)
			w.write(filepath.Join(precious.StagingPath, "file"), "precious")
			w.unstage(precious)
			cover := "/dev/null"
			if test.name == "another device" {
				cover = w.attach(other)
			}
			node := swapping(w, test.fsType, cover)
			w.want(w.service.Stage(w.context(), staging), backends.Unavailable)
			covered, err := os.ReadFile(node)
			w.must(err)
			w.must(unix.Unmount(string(covered), unix.MNT_DETACH))
			w.must(unix.Unmount(mkfsPath(w, test.fsType), unix.MNT_DETACH))
			if len(w.mounts()) != 0 {
				t.Errorf("mounted is %v", w.mounts())
			}
			w.stage(staging)
			w.unstage(staging)
			w.must(device.Detach(w.context(), other, patience))
			w.stage(precious)
			w.wantContent(filepath.Join(precious.StagingPath, "file"), "precious")
			w.unstage(precious)
			w.wantNothingLeft()
		})
	}
}

// swapping replaces mkfs by a program that runs it, and then binds another device's node over that of the device. The
// program notes the covered node in the returned file.
func swapping(w *world, fsType, cover string) (noted string) {
	w.Helper()
	text, err := os.ReadFile(mkfsPath(w, fsType))
	w.must(err)
	tool, script, noted := w.path("mkfs."+fsType), w.path("swapping"), w.path("covered")
	w.must(os.WriteFile(tool, text, 0o700))
	w.must(os.WriteFile(script,
		[]byte("#!/bin/sh\nset -e\nfor device; do :; done\n"+tool+" \"$@\"\nprintf %s \"$device\" > "+noted+
			"\nmount --bind "+cover+" \"$device\"\n"), 0o700))
	w.bind(script, mkfsPath(w, fsType))
	w.Cleanup(func() { _ = unix.Unmount(mkfsPath(w, fsType), unix.MNT_DETACH) }) // done already unless the test failed
	return noted
}

// The device of a raw staged volume is taken away, and its number becomes another's: the bound node leads there. The
// node is not handed out, and staging again replaces it.
func TestDeviceIsTakenAway(t *testing.T) {
	w := newWorld(t)
	image := w.image("v", 16)
	path := w.attach(image)
	w.shelf.sources["v"] = backends.Device{Path: path, Identity: backends.Identity{SizeBytes: 16 << 20}}
	staging, publish := w.stageRequest("v"), w.publishRequest("v")
	staging.Use.Type, publish.Use.Type = backends.Block, backends.Block
	w.stage(staging)
	w.remake(path)
	w.want(w.service.Publish(w.context(), publish), backends.InUse, "NodeStageVolume")
	_, err := w.service.Expand(w.context(), node.ExpandRequest{Volume: "v", Path: staging.StagingPath})
	w.want(err, backends.Unavailable)
	w.stage(staging)
	w.publish(publish)
	w.remake(path)
	w.stage(staging)
	w.publish(publish) // replaces the publication
	if state := w.inspect(publish.TargetPath); state.Deleted {
		t.Error("what is published is a node that is gone")
	}
	w.unpublish(publish)
	w.unstage(staging)
	w.must(device.Detach(w.context(), image, patience))
	w.wantNothingLeft()
}

// The image of a raw volume is detached behind the driver, and its loop device gets another image, or the same image
// once more. The node of a loop device is never deleted, so the bound node leads to what the device holds now. The node
// is neither handed out nor expanded nor measured, and staging again replaces it.
func TestLoopDeviceIsTakenAway(t *testing.T) {
	for _, next := range []string{"another image", "the same image"} {
		t.Run(next, func(t *testing.T) {
			w := newWorld(t)
			image, other := w.image("v", 16), w.image("other", 16)
			if next == "the same image" {
				other = image
			}
			staging, publish := w.stageRequest("v"), w.publishRequest("v")
			staging.Use.Type, publish.Use.Type = backends.Block, backends.Block
			w.stage(staging)
			number := w.inspect(w.placeOf(staging)).Rdev
			w.replace(fmt.Sprintf("/dev/loop%d", unix.Minor(number)), image, other)

			w.want(w.service.Publish(w.context(), publish), backends.InUse, "NodeStageVolume")
			_, err := w.service.Expand(w.context(), node.ExpandRequest{Volume: "v", Path: staging.StagingPath})
			w.want(err, backends.Unavailable)
			_, err = w.service.Stats(w.context(), "v", staging.StagingPath)
			w.want(err, backends.NotFound)
			w.stage(staging)
			w.publish(publish)
			if now := w.inspect(publish.TargetPath).Rdev; now == number && other != image {
				t.Errorf("published is device %d:%d, which holds %s, want that of %s", unix.Major(now), unix.Minor(now), other,
					image)
			}
			w.unpublish(publish)
			w.unstage(staging)
			w.must(device.Detach(w.context(), other, patience))
			w.wantNothingLeft()
		})
	}
}

// The device of a raw volume staged read-only is taken away, and another write-protected one gets its name and number.
// Unstaging the first lifts only the protection of its own device.
func TestProtectionOfAnotherDevice(t *testing.T) {
	w := newWorld(t)
	image := w.image("v", 16)
	path := w.lent(image, false)
	staging := w.stageRequest("v")
	staging.Use = node.Use{Type: backends.Block, Mode: backends.MultiNodeReaderOnly}
	for _, other := range []bool{false, true} {
		w.stage(staging)
		if other {
			w.remake(path)
		}
		w.unstage(staging)
		if w.protected(path) != other {
			t.Errorf("another device %t: its protection is %t", other, !other)
		}
	}
	w.must(device.Detach(w.context(), image, patience))
	w.wantNothingLeft()
}

// remake deletes the node of a device and makes another, as the kernel does when a device goes and another gets its
// number.
func (w *world) remake(path string) {
	w.Helper()
	var stat unix.Stat_t
	w.must(unix.Stat(path, &stat))
	w.must(os.Remove(path))
	w.must(unix.Mknod(path, stat.Mode, int(stat.Rdev)))
}

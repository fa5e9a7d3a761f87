package node_test

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node"
	"github.com/stowage-csi/stowage/pkg/node/device"
	"github.com/stowage-csi/stowage/pkg/node/filesystem"
)

// sizeFor returns the required size of an image of a type, in MiB.
func sizeFor(fsType string) int64 {
	if fsType == "ext4" {
		return 16
	}
	return 300
}

// unmounted returns an image that was unmounted cleanly, with one file on it.
func (w *world) unmounted(fsType string) (image string) {
	w.Helper()
	if err := filesystem.Missing(fsType); err != nil {
		w.Skipf("NOT RUN: %v", err)
	}
	name := "origin-" + fsType
	image = w.image(name, sizeFor(fsType))
	request := w.stageRequest(name)
	request.Use.FSType = fsType
	w.stage(request)
	w.write(filepath.Join(request.StagingPath, "file"), "data")
	w.unstage(request)
	return image
}

// crashed returns a copy of such an image, made while it is mounted, a deleted file is open, and some data is only in
// the journal.
func (w *world) crashed(fsType string) (image string) {
	w.Helper()
	image = w.unmounted(fsType)
	request := w.stageRequest(filepath.Base(image))
	w.stage(request)
	root, err := os.Open(request.StagingPath)
	w.must(err)
	orphan, err := os.Create(filepath.Join(request.StagingPath, "orphan"))
	w.must(err)
	_, err = orphan.Write(make([]byte, 64<<10))
	w.must(err)
	w.must(unix.Syncfs(int(root.Fd())))
	w.must(os.Remove(orphan.Name()))
	w.must(unix.Syncfs(int(root.Fd())))
	late, err := os.Create(filepath.Join(request.StagingPath, "late"))
	w.must(err)
	_, err = late.Write([]byte("late"))
	w.must(err)
	w.must(late.Sync())
	w.must(exec.CommandContext(w.context(), "cp", "--sparse=always", image, image+".crashed").Run())
	for _, file := range []*os.File{root, orphan, late} {
		w.must(file.Close())
	}
	w.unstage(request)
	w.must(os.Rename(image+".crashed", image))
	return image
}

// node puts volume v on the shelf as a device of the node: a loop device that does not count as an image's.
func (w *world) node(image string, readOnly bool) (path string) {
	w.Helper()
	path = w.attach(image)
	if readOnly {
		w.protect(path, true)
	}
	w.shelf.sources["v"] = backends.Device{Path: path}
	return path
}

// lent is node for a device whose write protection may change. The protection is lifted when the test ends, because a
// loop device would keep it for its next image.
func (w *world) lent(image string, readOnly bool) (path string) {
	w.Helper()
	path = w.node(image, readOnly)
	w.Cleanup(func() { w.protect(path, false) })
	return path
}

// protect sets the write protection of a device.
func (w *world) protect(path string, on bool) {
	w.Helper()
	device, err := os.Open(path)
	w.must(err)
	defer device.Close()
	value := 0
	if on {
		value = 1
	}
	w.must(unix.IoctlSetPointerInt(int(device.Fd()), unix.BLKROSET, value))
}

// protected reports whether a device refuses writes.
func (w *world) protected(path string) bool {
	w.Helper()
	device, err := os.Open(path)
	w.must(err)
	defer device.Close()
	value, err := unix.IoctlGetInt(int(device.Fd()), unix.BLKROGET)
	w.must(err)
	return value != 0
}

// claimFree opens a free loop device, and claims it: until it is closed, the kernel attaches no other process's file to
// it (O_EXCL, LOOP_CONFIGURE).
func (w *world) claimFree() (held *os.File) {
	w.Helper()
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	w.must(err)
	defer control.Close()
	if !eventually(func() bool {
		number, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		w.must(err)
		if held, err = os.OpenFile(fmt.Sprintf("/dev/loop%d", number), os.O_RDWR|unix.O_EXCL, 0); err != nil {
			return false // another process has just claimed it
		}
		if _, err = unix.IoctlLoopGetStatus64(int(held.Fd())); errors.Is(err, unix.ENXIO) {
			return true // it holds nothing
		}
		w.must(held.Close())
		return false
	}) {
		w.Fatal("no loop device is free")
	}
	return held
}

// inherit attaches an image to a loop device that is write-protected already, as a device is that was write-protected
// when its earlier image was detached, and returns the device. The device is claimed meanwhile, so that no other test
// on the machine gets a protected one.
func (w *world) inherit(image string) (loop string) {
	w.Helper()
	file, err := os.OpenFile(image, os.O_RDWR, 0)
	w.must(err)
	defer file.Close()
	held := w.claimFree()
	defer held.Close()
	w.must(unix.IoctlSetPointerInt(int(held.Fd()), unix.BLKROSET, 1))
	if err := unix.IoctlLoopConfigure(int(held.Fd()), &unix.LoopConfig{Fd: uint32(file.Fd())}); err != nil {
		w.must(unix.IoctlSetPointerInt(int(held.Fd()), unix.BLKROSET, 0))
		w.Fatal(err)
	}
	return held.Name()
}

// The kernel leaves a loop device write-protected if it was so when it was detached. The next volume to get it lifts
// that.
func TestProtectionIsNotInherited(t *testing.T) {
	w := newWorld(t)
	loop := w.inherit(w.image("v", 16))
	t.Cleanup(func() { w.protect(loop, false) })
	if !w.protected(loop) {
		t.Fatalf("%s takes writes: the test is wrong", loop)
	}
	request := w.stageRequest("v")
	w.stage(request)
	if loops := w.loops(); len(loops) != 1 || strings.Fields(loops[0])[0] != loop {
		t.Errorf("staged on %v, want %s: the test is wrong", loops, loop)
	}
	w.write(filepath.Join(request.StagingPath, "file"), "data")
	w.unstage(request)
	w.wantNothingLeft()
}

// A read-only staged volume is not written to, whether or not its filesystem was unmounted cleanly, whether it is an
// image or a device, and whatever its options say.
func TestReadOnlyNeverWrites(t *testing.T) {
	for _, fsType := range filesystem.Types() {
		for state, prepare := range map[string]func(*world, string) string{"clean": (*world).unmounted,
			"dirty": (*world).crashed} {
			for _, form := range []string{"image", "device", "protected device"} {
				t.Run(fsType+", "+state+", "+form, func(t *testing.T) {
					w := newWorld(t)
					image := prepare(w, fsType)
					request, publish := w.stageRequest("v"), w.publishRequest("v")
					device := ""
					if form == "image" {
						w.shelf.sources["v"] = backends.Device{Path: image, Image: true}
					} else {
						device = w.lent(image, form == "protected device")
					}
					before := checksum(t, image)
					request.Use.Mode, publish.Use.Mode = backends.MultiNodeReaderOnly, backends.MultiNodeReaderOnly
					if fsType == "ext4" {
						request.MountOptions = []string{"data=ordered", "commit=7", "noatime"}
					}
					if state == "dirty" {
						request.MountOptions = append(request.MountOptions, asItStands(fsType)) // TestUncleanIsRefused
					}
					for range 2 {
						w.stage(request)
						w.publish(publish)
						w.restart()
					}
					entries, err := os.ReadDir(publish.TargetPath)
					w.must(err)
					// Without the replay of its log an xfs may look empty.
					if state == "clean" || fsType != "xfs" {
						w.wantContent(filepath.Join(publish.TargetPath, "file"), "data")
					}
					t.Logf("a reader sees %d entries", len(entries))
					w.unpublish(publish)
					w.unstage(request)
					if checksum(t, image) != before {
						t.Error("the device was written to")
					}
					if device != "" && w.protected(device) {
						t.Error("the device is write-protected still after it was unstaged")
					}

					// The next staging for writing replays the journal.
					request.Use.Mode, request.MountOptions = backends.SingleNodeWriter, nil
					w.stage(request)
					w.wantContent(filepath.Join(request.StagingPath, "file"), "data")
					if state == "dirty" {
						w.wantContent(filepath.Join(request.StagingPath, "late"), "late")
					}
					w.write(filepath.Join(request.StagingPath, "new"), "new")
					w.unstage(request)
				})
			}
		}
	}
}

// asItStands returns the mount option that reads a filesystem without the contents of its log.
func asItStands(fsType string) string {
	return map[string]string{"ext4": "noload", "xfs": "norecovery", "btrfs": "rescue=nologreplay"}[fsType]
}

// A filesystem whose log has to be replayed lacks the data that was synced last, perhaps all of it. Read-only staging
// refuses it unless the request asks for that. After it was staged for writing, it is accepted.
func TestUncleanIsRefused(t *testing.T) {
	for _, fsType := range filesystem.Types() {
		for _, form := range []string{"image", "device"} {
			t.Run(fsType+", "+form, func(t *testing.T) { uncleanIsRefused(t, fsType, form) })
		}
	}
}

func uncleanIsRefused(t *testing.T, fsType, form string) {
	w := newWorld(t)
	image := w.crashed(fsType)
	w.shelf.sources["v"] = backends.Device{Path: image, Image: true}
	if form == "device" {
		w.lent(image, false)
	}
	before := checksum(t, image)
	request := w.stageRequest("v")
	request.Use.Mode = backends.MultiNodeReaderOnly
	w.want(w.service.Stage(w.context(), request), backends.Invalid, "the "+fsType, "was not unmounted cleanly",
		"once for writing", asItStands(fsType))
	if checksum(t, image) != before {
		t.Error("the device was written to")
	}
	request.Use.Mode = backends.SingleNodeWriter
	w.stage(request)
	w.unstage(request)
	request.Use.Mode = backends.MultiNodeReaderOnly
	w.stage(request)
	w.wantContent(filepath.Join(request.StagingPath, "late"), "late")
	w.unstage(request)
}

// intent records that a growth of an ext4 in an image was cut short, as of a time of the last mount.
func (w *world) intent(image, lastMount string) {
	w.Helper()
	file, err := os.Open(image)
	w.must(err)
	defer file.Close()
	superblock := make([]byte, 1024)
	_, err = file.ReadAt(superblock, 1024)
	w.must(err)
	if lastMount == "" {
		lastMount = fmt.Sprintf("%08x", binary.LittleEndian.Uint32(superblock[0x2c:]))
	}
	hash := sha256.Sum256([]byte(filepath.Base(image)))
	w.write(filepath.Join(w.mkdir(w.path("state", "repairing")), fmt.Sprintf("%x-%s", hash[:16], lastMount)),
		"g"+string(superblock))
}

// A growth that was cut short is not completed for a reader, who would see a damaged filesystem. Staging for writing
// completes it. An intent of an earlier mount counts for nothing.
func TestCutShortIsRefused(t *testing.T) {
	w := newWorld(t)
	image := w.unmounted("ext4")
	request := w.stageRequest(filepath.Base(image))
	request.Use.Mode = backends.MultiNodeReaderOnly
	w.intent(image, "00000001")
	w.stage(request)
	w.unstage(request)
	w.intent(image, "")
	before := checksum(t, image)
	w.want(w.service.Stage(w.context(), request), backends.Invalid, "was cut short", "once for writing")
	if checksum(t, image) != before {
		t.Error("the device was written to")
	}
	request.Use.Mode = backends.SingleNodeWriter
	w.stage(request)
	w.unstage(request)
	request.Use.Mode = backends.MultiNodeReaderOnly
	w.stage(request)
	w.wantContent(filepath.Join(request.StagingPath, "file"), "data")
	w.unstage(request)
	w.wantNothingLeft()
}

// A refused read-only staging leaves the device as it was: the next user may write to it, unless it was protected
// before.
func TestRefusalLeavesNoProtection(t *testing.T) {
	for name, prepare := range map[string]func(*world, *node.StageRequest) (image string){
		"blank": func(w *world, _ *node.StageRequest) string { return w.image("blank", 16) },
		"another filesystem": func(w *world, r *node.StageRequest) string {
			r.Use.FSType = "xfs"
			return w.unmounted("ext4")
		},
		"unclean xfs":  func(w *world, _ *node.StageRequest) string { return w.crashed("xfs") },
		"unclean ext4": func(w *world, _ *node.StageRequest) string { return w.crashed("ext4") },
		"an option that is none": func(w *world, r *node.StageRequest) string {
			r.MountOptions = []string{"stripe=none"}
			return w.unmounted("ext4")
		},
		"a raw device with its place taken": func(w *world, r *node.StageRequest) string {
			r.Use.Type = backends.Block
			w.mkdir(filepath.Join(r.StagingPath, "device"))
			return w.image("blank", 16)
		},
	} {
		for _, protected := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, protected before: %t", name, protected), func(t *testing.T) {
				w := newWorld(t)
				request := w.stageRequest("v")
				request.Use.Mode = backends.MultiNodeReaderOnly
				path := w.lent(prepare(w, &request), protected)
				if err := w.service.Stage(w.context(), request); err == nil {
					t.Fatal("it was staged: the test is wrong")
				} else {
					t.Log(err)
				}
				if w.protected(path) != protected {
					t.Errorf("write-protected after the refusal: %t, want %t", w.protected(path), protected)
				}
			})
		}
	}
}

// A copy of a frozen filesystem, such as a snapshot, shows all its files when it is staged read-only.
func TestFrozenIsShown(t *testing.T) {
	for _, fsType := range filesystem.Types() {
		t.Run(fsType, func(t *testing.T) { frozenIsShown(newWorld(t), fsType) })
	}
}

func frozenIsShown(w *world, fsType string) {
	image := w.unmounted(fsType)
	request := w.stageRequest(filepath.Base(image))
	w.stage(request)
	w.write(filepath.Join(request.StagingPath, "late"), "late")
	w.must(exec.CommandContext(w.context(), "sh", "-ec",
		"fsfreeze -f $0; cp --sparse=always $1 $1.frozen || failed=1; fsfreeze -u $0; exit $failed",
		request.StagingPath, image).Run())
	w.unstage(request)
	w.shelf.sources["v"] = backends.Device{Path: image + ".frozen", Image: true}
	request = w.stageRequest("v")
	request.Use.Mode = backends.MultiNodeReaderOnly
	w.stage(request)
	w.wantContent(filepath.Join(request.StagingPath, "late"), "late")
	w.unstage(request)
	w.wantNothingLeft()
}

// Staging for writing lifts the write protection that read-only staging left when the node forgot the volume. The
// device's own protection is not lifted, and is named.
func TestWriteProtectedDevice(t *testing.T) {
	w := newWorld(t)
	image := w.unmounted("ext4")
	w.lent(image, true)
	request := w.stageRequest("v")
	w.stage(request)
	w.write(filepath.Join(request.StagingPath, "new"), "new")
	w.unstage(request)
	w.must(device.Detach(w.context(), image, patience))

	opened, err := device.Open(w.context(), backends.Device{Path: image, Image: true},
		device.Options{ReadOnly: true, Persistent: true})
	w.must(err)
	w.must(opened.Close())
	fixed := opened.Path
	w.shelf.sources["v"] = backends.Device{Path: fixed}
	before := checksum(t, image)
	w.want(w.service.Stage(w.context(), request), backends.Denied, fixed+" is write-protected itself")
	request.Use.Mode = backends.MultiNodeReaderOnly
	w.stage(request)
	w.wantContent(filepath.Join(request.StagingPath, "new"), "new")
	w.unstage(request)
	if checksum(t, image) != before {
		t.Error("the device was written to")
	}
	if !w.protected(fixed) {
		t.Error("the device's own protection was lifted")
	}
}

// A raw device that is staged read-only refuses writes, whoever opens it.
func TestReadOnlyBlock(t *testing.T) {
	for _, form := range []string{"image", "device"} {
		t.Run(form, func(t *testing.T) {
			w := newWorld(t)
			image := w.image("v", 16)
			if form == "device" {
				w.lent(image, false)
			}
			request := w.stageRequest("v")
			request.Use = node.Use{Type: backends.Block, Mode: backends.MultiNodeReaderOnly}
			w.stage(request)
			file, err := os.OpenFile(filepath.Join(request.StagingPath, "device"), os.O_RDWR, 0)
			if err == nil {
				_, err = file.WriteAt([]byte("data"), 0)
				w.must(file.Close())
			}
			if err == nil {
				t.Error("a raw device that was staged for reading only can be written to")
			}
			w.unstage(request)
			request.Use.Mode = backends.SingleNodeWriter
			w.stage(request)
			w.must(os.WriteFile(filepath.Join(request.StagingPath, "device"), []byte("data"), 0))
			w.unstage(request)
		})
	}
}

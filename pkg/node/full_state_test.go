package node_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node"
	"github.com/stowage-csi/stowage/pkg/node/device"
	"github.com/stowage-csi/stowage/pkg/node/ledger"
	"github.com/stowage-csi/stowage/tests/testfs"
)

// onDisk puts the state directory on its own disk, which is too small for spare room.
func (w *world) onDisk() (state string) { return w.onDiskOf("64k") }

func (w *world) onDiskOf(size string) (state string) {
	w.Helper()
	state = w.mkdir(w.path("state"))
	w.must(unix.Mount("state", state, "tmpfs", 0, "size="+size))
	w.restart()
	return state
}

// fill leaves no free block on a disk.
func (w *world) fill(dir string) {
	w.Helper()
	file, err := os.Create(dir + "/filler")
	w.must(err)
	for err == nil {
		_, err = file.Write(make([]byte, 4096))
	}
	w.must(file.Close())
}

// deepTarget returns a target whose path fills most of a block, so that no record of it fits into the last block of a
// file.
func (w *world) deepTarget(r node.PublishRequest) node.PublishRequest {
	w.Helper()
	r.TargetPath = w.path("pods")
	for len(r.TargetPath) < 3600 {
		r.TargetPath = filepath.Join(r.TargetPath, strings.Repeat("d", 200))
	}
	w.mkdir(filepath.Dir(r.TargetPath))
	return r
}

// wantUnwritten checks that the record on the disk could not be changed.
func (w *world) wantUnwritten(state, target string) {
	w.Helper()
	files, err := filepath.Glob(state + "/*.json")
	w.must(err)
	for _, file := range files {
		data, err := os.ReadFile(file)
		w.must(err)
		lines := strings.Split(string(data), "\n") // the last is empty, or incomplete
		if !strings.Contains(lines[len(lines)-2], target+`"`) {
			w.Errorf("the record was changed: nothing is shown by this")
		}
	}
}

// Taking a volume down needs neither free space nor a writable disk, and is final.
func TestTakenDownWithoutWriting(t *testing.T) {
	for name, spoil := range map[string]func(w *world, state string){
		"full": func(w *world, state string) { w.fill(state) },
		"read-only": func(w *world, state string) {
			w.must(unix.Mount("", state, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			state := w.onDisk()
			w.image("v", 16)
			staging, first := w.stageRequest("v"), w.deepTarget(w.publishRequest("v"))
			second := first
			second.TargetPath += "-2"
			w.stage(staging)
			w.publish(first)
			w.publish(second)
			spoil(w, state)
			for range 2 {
				w.unpublish(first)
			}
			w.wantUnwritten(state, first.TargetPath)
			if mounts := w.mounts(); len(mounts) != 3 {
				t.Errorf("mounted are %v, want the state, the staging and one target", mounts)
			}
			w.restart() // with the disk's records, which claim too much
			w.unpublish(second)
			for range 2 {
				w.unstage(staging)
			}
			w.restart()
			w.unstage(staging)
			w.must(unix.Mount("", state, "", unix.MS_REMOUNT, "size=1m"))
			w.must(os.RemoveAll(state + "/filler"))
			w.stage(staging)
			w.publish(first)
			w.unpublish(first)
			w.unstage(staging)
			w.detach(state)
			w.must(os.RemoveAll(w.path("pods")))
			w.wantNothingLeft()
		})
	}
}

// A node part starts and uses volumes although its state directory takes no writes at the start. Only a repair needs a
// directory for its intent.
func TestStartWithoutWriting(t *testing.T) {
	w := newWorld(t)
	state := w.onDisk()
	if _, err := os.Lstat(filepath.Join(state, "repairing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory of intents after a start: got %v, want %v", err, fs.ErrNotExist)
	}
	w.must(unix.Mount("", state, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	w.restart()
	w.must(unix.Mount("", state, "", unix.MS_REMOUNT, ""))
	w.image("v", 16)
	w.stage(w.stageRequest("v"))
	w.unstage(w.stageRequest("v"))
	w.detach(state)
	w.wantNothingLeft()
}

// A raw volume is unstaged although the disk of its staging path takes no writes, and can be staged again once it does.
func TestRawVolumeOnAReadOnlyDisk(t *testing.T) {
	for _, form := range []string{"image", "disk"} {
		t.Run(form, func(t *testing.T) {
			w := newWorld(t)
			kubelet := w.mkdir(w.path("staging"))
			w.must(unix.Mount("kubelet", kubelet, "tmpfs", 0, ""))
			image := w.image("v", 16)
			if form == "disk" {
				w.node(image, false)
			}
			staging := w.stageRequest("v")
			staging.Use.Type = backends.Block
			for range 2 {
				w.stage(staging)
				w.must(unix.Mount("", kubelet, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
				for range 2 {
					w.unstage(staging)
				}
				if w.shelf.Used(w.context(), "v") {
					t.Error("the volume is in use after it was unstaged")
				}
				w.must(unix.Mount("", kubelet, "", unix.MS_REMOUNT, ""))
			}
			w.detach(kubelet)
			if form == "disk" {
				w.must(device.Detach(w.context(), image, patience))
			}
			w.wantNothingLeft()
		})
	}
}

// onFilesystem puts the state directory on its own filesystem.
func (w *world) onFilesystem(fsType string, mib int64) (state string) {
	w.Helper()
	if fsType == "tmpfs" {
		return w.onDiskOf(fmt.Sprintf("%dm", mib))
	}
	state = w.mkdir(w.path("state"))
	w.must(unix.Mount(testfs.New(w, fsType, mib), state, "", unix.MS_BIND, ""))
	w.restart()
	return state
}

// A volume is staged and unstaged while the state directory is full, across restarts, and also once there is room
// again.
func TestFullStateDirectory(t *testing.T) {
	for fsType, mib := range map[string]int64{"tmpfs": 2, "ext4": 32, "xfs": 300, "btrfs": 128} {
		t.Run(fsType, func(t *testing.T) { newWorld(t).comesAndGoes(fsType, mib) })
	}
}

func (w *world) comesAndGoes(fsType string, mib int64) {
	state := w.onFilesystem(fsType, mib)
	w.image("used", 16)
	w.image("v", 16)
	w.directory("plain")
	w.stage(w.stageRequest("used"))
	for round := range 3 {
		for _, name := range []string{"v", "plain", "used"} {
			staging, publishing := w.stageRequest(name), w.publishRequest(name)
			if round < 2 {
				testfs.Fill(w, state) // taking down has made room
			}
			for range 2 {
				w.stage(staging)
				w.publish(publishing)
				w.restart()
			}
			w.want(w.service.Unstage(w.context(), name, staging.StagingPath), backends.InUse, publishing.TargetPath)
			w.unpublish(publishing)
			w.restart()
			w.unstage(staging)
			w.restart()
			if _, err := w.service.Health(w.context(), name, "", ""); !backends.Is(err, backends.NotFound) {
				w.Errorf("round %d: of %s, which was unstaged, something is known: %v", round, name, err)
			}
		}
		if round == 1 {
			w.must(os.Remove(state + "/filler"))
		}
	}
	w.detach(state)
	w.wantNothingLeft()
}

// A reboot made the records stale, and they cannot be removed. The service starts nevertheless, and knows nothing.
func TestStartsWithoutWriting(t *testing.T) {
	w := newWorld(t)
	state := w.onDisk()
	l, _, err := ledger.Open(w.context(), state, "an earlier boot", nil)
	w.must(err)
	w.must(l.Put(ledger.Record{Volume: "v", Published: []ledger.Publication{{Target: "/none"}}}))
	w.must(os.WriteFile(state+"/half.json", []byte("{"), 0o600))
	w.must(unix.Mount("", state, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	w.restart()
	_, err = w.service.Health(w.context(), "v", "", "")
	w.want(err, backends.NotFound)
	w.detach(state)
}

// The record of a volume that is gone names a device whose number now belongs to another volume.
func TestDeviceNumberUsedAgain(t *testing.T) {
	w := newWorld(t)
	image := w.image("v", 16)
	w.shelf.sources["v"] = backends.Device{Path: w.attach(image)}
	staging, gone := w.stageRequest("v"), w.stageRequest("gone")
	w.stage(staging)
	var stat unix.Stat_t
	w.must(unix.Stat(staging.StagingPath, &stat))
	w.must(w.records().Put(ledger.Record{Volume: "gone", Staged: &ledger.Staging{
		Path: gone.StagingPath, Type: backends.Mount, Mode: gone.Use.Mode, Source: ledger.Source{
			Kind: ledger.Device, Path: "/dev/none", FSType: "ext4", DevicePath: w.shelf.sources["v"].(backends.Device).Path,
			Major: unix.Major(stat.Dev), Minor: unix.Minor(stat.Dev), Sequence: 1, // that of the machine's first disk
		},
	}}))
	w.restart()
	w.unstage(gone)
	w.unstage(staging)
	w.must(device.Detach(w.context(), image, patience))
	w.wantNothingLeft()
}

// A record that could not be removed is back after a restart of the process. The kernel is asked before the record
// prevents the deletion of the volume.
func TestStaleRecordKeepsNothing(t *testing.T) {
	for _, form := range []string{"image", "raw image", "directory"} {
		t.Run(form, func(t *testing.T) {
			w := newWorld(t)
			staging := w.stageRequest("v")
			switch form {
			case "raw image":
				staging.Use.Type = backends.Block
				w.image("v", 16)
			case "image":
				w.image("v", 16)
			default:
				w.directory("v")
			}
			w.stage(staging)
			w.restart()
			w.want(w.service.CheckUnused(w.context(), "v"), backends.InUse, staging.StagingPath)
			records, err := filepath.Glob(w.path("state", "*.json"))
			w.must(err)
			if len(records) != 1 {
				t.Fatalf("the records are %q", records)
			}
			text, err := os.ReadFile(records[0])
			w.must(err)
			w.unstage(staging)
			w.must(os.WriteFile(records[0], text, 0o600))
			w.restart()
			w.must(w.service.CheckUnused(w.context(), "v"))
			w.wantNothingLeft()
		})
	}
}

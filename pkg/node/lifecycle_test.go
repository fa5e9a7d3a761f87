package node_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node"
	"github.com/stowage-csi/stowage/pkg/node/mount"
)

// forms returns all forms of a volume with a filesystem.
func forms() []struct {
	name, fsType string
	make         func(w *world, volume string)
} {
	image := func(mib int64) func(*world, string) {
		return func(w *world, volume string) { w.image(volume, mib) }
	}
	return []struct {
		name, fsType string
		make         func(w *world, volume string)
	}{
		{"ext4", "ext4", image(32)},
		{"xfs", "xfs", image(300)},
		{"btrfs", "btrfs", image(128)},
		{"directory", "", func(w *world, volume string) { w.directory(volume) }},
		{"export", "", func(w *world, volume string) { w.export(volume) }},
	}
}

// Every call is made twice, with a restart of the service in between.
func TestLifecycle(t *testing.T) {
	for _, form := range forms() {
		t.Run(form.name, func(t *testing.T) {
			w := newWorld(t)
			form.make(w, "v")
			staging, publishing := w.stageRequest("v"), w.publishRequest("v")
			staging.Use.FSType = form.fsType
			twice := func(call func()) {
				call()
				w.restart()
				call()
			}
			for round := range 2 {
				twice(func() { w.stage(staging) })
				twice(func() { w.publish(publishing) })
				if mounts := w.mounts(); len(mounts) != 2 {
					t.Fatalf("mounted are %v, want one staging and one target", mounts)
				}
				file := filepath.Join(publishing.TargetPath, "file")
				if round == 1 && form.name != "export" {
					w.wantContent(file, "data")
				}
				w.write(file, "data")
				twice(func() { w.unpublish(publishing) })
				if len(w.shelf.released) != 2*round {
					t.Errorf("released while staged: %v", w.shelf.released)
				}
				twice(func() { w.unstage(staging) })
				if len(w.shelf.released) != 2*round+2 {
					t.Errorf("released %v, want once for each Unstage", w.shelf.released)
				}
				w.wantNothingLeft()
			}
		})
	}
}

func TestBlockLifecycle(t *testing.T) {
	w := newWorld(t)
	w.image("v", 16)
	staging, publishing := w.stageRequest("v"), w.publishRequest("v")
	staging.Use.Type, publishing.Use.Type = backends.Block, backends.Block
	for round := range 2 {
		for range 2 {
			w.stage(staging)
			w.publish(publishing)
			w.restart()
		}
		if mounts, loops := w.mounts(), w.loops(); len(mounts) != 2 || len(loops) != 1 {
			t.Fatalf("mounted are %v over %v, want one device, staged and published", mounts, loops)
		}
		var stat unix.Stat_t
		w.must(unix.Stat(publishing.TargetPath, &stat))
		if stat.Mode&unix.S_IFMT != unix.S_IFBLK {
			t.Fatalf("the target has mode %o, want a block device", stat.Mode)
		}
		device, err := os.OpenFile(publishing.TargetPath, os.O_RDWR|os.O_SYNC, 0)
		w.must(err)
		got := make([]byte, 4)
		_, err = device.ReadAt(got, 4096)
		w.must(err)
		if round == 1 && string(got) != "data" {
			t.Errorf("the device holds %q, want what was written before", got)
		}
		_, err = device.WriteAt([]byte("data"), 4096)
		w.must(err)
		w.must(device.Close())
		for range 2 {
			w.unpublish(publishing)
			w.restart()
		}
		for range 2 {
			w.unstage(staging)
			w.restart()
		}
		w.wantNothingLeft()
	}
}

func TestReadOnly(t *testing.T) {
	for _, form := range forms()[:4] {
		t.Run(form.name, func(t *testing.T) {
			w := newWorld(t)
			form.make(w, "v")
			staging, publishing := w.stageRequest("v"), w.publishRequest("v")
			w.stage(staging)
			w.write(filepath.Join(staging.StagingPath, "file"), "data")
			other := publishing
			other.TargetPath, other.ReadOnly = publishing.TargetPath+"-read-only", true
			w.publish(publishing)
			w.publish(other)
			w.write(filepath.Join(publishing.TargetPath, "file"), "more data")
			w.wantContent(filepath.Join(other.TargetPath, "file"), "more data")
			if err := os.WriteFile(filepath.Join(other.TargetPath, "file"), nil, 0o600); err == nil {
				t.Error("a target that was published read-only can be written to")
			}
			w.unpublish(publishing)
			w.unpublish(other)
			w.unstage(staging)

			staging.Use.Mode, publishing.Use.Mode = backends.MultiNodeReaderOnly, backends.MultiNodeReaderOnly
			for range 2 {
				w.stage(staging)
				w.publish(publishing)
				w.restart()
			}
			for _, path := range []string{staging.StagingPath, publishing.TargetPath} {
				w.wantContent(filepath.Join(path, "file"), "more data")
				if err := os.WriteFile(filepath.Join(path, "file"), nil, 0o600); err == nil {
					t.Errorf("%s can be written to in a mode for readers", path)
				}
			}
			writer := publishing
			writer.TargetPath, writer.Use.Mode = publishing.TargetPath+"-writer", backends.SingleNodeMultiWriter
			w.want(w.service.Publish(w.context(), writer), backends.InUse, "reading only")
			w.unpublish(publishing)
			w.unstage(staging)
			w.wantNothingLeft()
		})
	}
}

func TestMountOptions(t *testing.T) {
	w := newWorld(t)
	w.image("v", 16)
	staging, publishing := w.stageRequest("v"), w.publishRequest("v")
	staging.MountOptions = []string{"noexec", "noatime"}
	w.stage(staging)
	publishing.MountOptions = []string{"noexec", "ro"}
	w.publish(publishing)
	var fs unix.Statfs_t
	w.must(unix.Statfs(publishing.TargetPath, &fs))
	if want := int64(unix.ST_NOEXEC | unix.ST_NOATIME | unix.ST_RDONLY); fs.Flags&want != want {
		t.Errorf("the target has flags %x, want noexec, noatime and ro", fs.Flags)
	}
	w.unpublish(publishing)
	w.unstage(staging)

	staging.MountOptions = []string{"no-such-option"}
	w.want(w.service.Stage(w.context(), staging), backends.Invalid, "no-such-option")
	staging.MountOptions = []string{"noatime,bind"}
	w.want(w.service.Stage(w.context(), staging), backends.Invalid, "noatime,bind")
	w.directory("d")
	directory := w.stageRequest("d")
	directory.MountOptions = []string{"rw", "noexec", "commit=5"}
	w.want(w.service.Stage(w.context(), directory), backends.Invalid, "commit=5")
	directory.MountOptions = []string{"rw", "ro"}
	w.stage(directory)
	if !w.inspect(directory.StagingPath).ReadOnly {
		t.Error("a directory that was staged with ro can be written to")
	}
	w.unstage(directory)
	w.wantNothingLeft()
}

// Two filesystems with one UUID, such as a volume and its clone, are mounted side by side, and each is the right one.
func TestClonesSideBySide(t *testing.T) {
	for _, fsType := range []string{"ext4", "xfs", "btrfs"} {
		t.Run(fsType, func(t *testing.T) {
			w := newWorld(t)
			original := w.image("original", 300)
			first := w.stageRequest("original")
			first.Use.FSType = fsType
			w.stage(first)
			w.write(filepath.Join(first.StagingPath, "file"), "data")
			w.unstage(first)
			clone := w.image("clone", 300)
			data, err := os.ReadFile(original)
			w.must(err)
			w.must(os.WriteFile(clone, data, 0o600))
			w.stage(first)
			w.write(filepath.Join(first.StagingPath, "file"), "newer data")
			second := w.stageRequest("clone")
			second.Use.FSType = fsType
			w.stage(second)
			w.wantContent(filepath.Join(second.StagingPath, "file"), "data")
			w.unstage(first)
			w.unstage(second)
			w.wantNothingLeft()
		})
	}
}

// A filesystem from a smaller volume fills its device once it is staged.
func TestStageGrows(t *testing.T) {
	for _, form := range forms()[:3] {
		t.Run(form.name, func(t *testing.T) {
			w := newWorld(t)
			form.make(w, "v")
			staging := w.stageRequest("v")
			staging.Use.FSType = form.fsType
			w.stage(staging)
			w.write(filepath.Join(staging.StagingPath, "file"), "data")
			before, err := w.service.Stats(w.context(), "v", staging.StagingPath)
			w.must(err)
			w.unstage(staging)
			w.must(os.Truncate(w.path("images", "v"), 600<<20))
			staging.Use.Mode = backends.SingleNodeReaderOnly
			w.stage(staging)
			same, err := w.service.Stats(w.context(), "v", staging.StagingPath)
			w.must(err)
			w.unstage(staging)
			staging.Use.Mode = backends.SingleNodeMultiWriter
			w.stage(staging)
			after, err := w.service.Stats(w.context(), "v", staging.StagingPath)
			w.must(err)
			if after.Bytes.Total < 500<<20 || same.Bytes.Total > before.Bytes.Total {
				t.Errorf("the filesystem had %d bytes, then %d for reading only, then %d; the device has %d", before.Bytes.Total,
					same.Bytes.Total, after.Bytes.Total, 600<<20)
			}
			w.wantContent(filepath.Join(staging.StagingPath, "file"), "data")
			w.unstage(staging)
			w.wantNothingLeft()
		})
	}
}

// The class determines the layout of a new filesystem.
func TestStageObeysTheGeometry(t *testing.T) {
	w := newWorld(t)
	w.image("v", 16)
	staging := w.stageRequest("v")
	staging.Use.FSType, staging.Settings.Inodes = "ext4", 512
	w.stage(staging)
	stats, err := w.service.Stats(w.context(), "v", staging.StagingPath)
	w.must(err)
	if stats.Inodes.Total != 512 {
		t.Errorf("the filesystem has %d inodes, want 512", stats.Inodes.Total)
	}
	w.unstage(staging)
	staging.Settings.Inodes = 1024 // Too late for this volume, and no reason to refuse it.
	w.stage(staging)
	w.unstage(staging)
	w.wantNothingLeft()
}

func TestVolumesInParallel(t *testing.T) {
	w := newWorld(t)
	names := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	requests := make([]node.StageRequest, len(names))
	for i, name := range names {
		if i%2 == 0 {
			w.image(name, 16)
		} else {
			w.directory(name)
		}
		requests[i] = w.stageRequest(name)
	}
	var wait sync.WaitGroup
	for i, name := range names {
		publishing := w.publishRequest(name)
		wait.Go(func() {
			for range 3 {
				for _, call := range []func() error{
					func() error { return w.service.Stage(w.context(), requests[i]) },
					func() error { return w.service.Publish(w.context(), publishing) },
					func() error { return os.WriteFile(filepath.Join(publishing.TargetPath, name), []byte(name), 0o600) },
					func() error { return w.service.Unpublish(w.context(), name, publishing.TargetPath) },
					func() error { return w.service.Unstage(w.context(), name, requests[i].StagingPath) },
				} {
					if err := call(); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	wait.Wait()
	w.wantNothingLeft()
	for i, name := range names {
		w.stage(requests[i])
		w.wantContent(filepath.Join(requests[i].StagingPath, name), name)
		w.unstage(requests[i])
	}
	if slices.Contains(w.shelf.released, "") {
		t.Error("a volume without a name was released")
	}
}

func BenchmarkDirectory(b *testing.B) {
	w := newWorld(b)
	w.directory("v")
	staging, publishing := w.stageRequest("v"), w.publishRequest("v")
	for b.Loop() {
		w.stage(staging)
		w.publish(publishing)
		w.unpublish(publishing)
		w.unstage(staging)
	}
}

func BenchmarkImage(b *testing.B) {
	w := newWorld(b)
	w.image("v", 64)
	staging, publishing := w.stageRequest("v"), w.publishRequest("v")
	for b.Loop() {
		w.stage(staging)
		w.publish(publishing)
		w.unpublish(publishing)
		w.unstage(staging)
	}
}

// A server that does not export a volume that the backend knows has not lost it.
func TestExportThatIsNotThere(t *testing.T) {
	w := newWorld(t)
	w.shelf.sources["v"] = backends.Export{FSType: "ext4", Source: "/dev/not-there"}
	if err := w.service.Stage(w.context(), w.stageRequest("v")); !backends.Is(err, backends.Unavailable) {
		t.Errorf("staging an export that is not there: %v, want Unavailable", err)
	}
}

// An unproven mount never appears at the staging path, and the proven one is staged.
func TestExportIsProven(t *testing.T) {
	w := newWorld(t)
	w.export("v")
	source := w.shelf.sources["v"].(backends.Export)
	request := w.stageRequest("v")
	var root unix.Stat_t
	var failure error
	source.Prove = func(_ context.Context, dir *os.File) error {
		if state, err := mount.Inspect(w.context(), request.StagingPath); err != nil || state.Mounted {
			t.Errorf("it is mounted before it is proven, or %v", err)
		}
		return errors.Join(unix.Fstat(int(dir.Fd()), &root), failure)
	}
	w.shelf.sources["v"] = source
	failure = backends.Errorf(backends.Unavailable, "it is another")
	if err := w.service.Stage(w.context(), request); !backends.Is(err, backends.Unavailable) ||
		!strings.Contains(err.Error(), "it is another") {
		t.Errorf("staging what is not proven: %v, want Unavailable with the proof's words", err)
	}
	if state, err := mount.Inspect(w.context(), request.StagingPath); err != nil || state.Mounted {
		t.Errorf("what is not proven is mounted, or %v", err)
	}
	failure = nil
	w.stage(request)
	if state, err := mount.Inspect(w.context(), request.StagingPath); err != nil || state.Ino != root.Ino ||
		state.Dev != root.Dev {
		t.Errorf("staged is %+v, %v; proven was %d on %d", state, err, root.Ino, root.Dev)
	}
}

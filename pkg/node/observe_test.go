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

func (w *world) groupOf(path string) uint32 {
	w.Helper()
	var stat unix.Stat_t
	w.must(unix.Lstat(path, &stat))
	return stat.Gid
}

func TestOwnership(t *testing.T) {
	for _, form := range forms() {
		t.Run(form.name, func(t *testing.T) {
			w := newWorld(t)
			w.groups = true
			w.restart()
			form.make(w, "v")
			staging, publishing := w.stageRequest("v"), w.publishRequest("v")
			staging.Use.FSType, staging.MountGroup = form.fsType, "4711"
			w.stage(staging)
			w.publish(publishing)
			file := filepath.Join(publishing.TargetPath, "file")
			w.write(file, "data")
			if root, below := w.groupOf(publishing.TargetPath), w.groupOf(file); root != 4711 || below != 4711 {
				t.Errorf("the root belongs to group %d and a new file to %d, want 4711", root, below)
			}
			// Without work, ownership is not applied: a user's changes stay.
			w.must(os.Chown(file, 0, 99))
			w.stage(staging)
			w.restart()
			w.stage(staging)
			if got := w.groupOf(file); got != 99 {
				t.Errorf("staging without work gave the file to group %d", got)
			}
			// Another group is work, once no pod has the files.
			w.unpublish(publishing)
			staging.MountGroup = "4712"
			w.stage(staging)
			w.publish(publishing)
			if got := w.groupOf(file); got != 4712 {
				t.Errorf("after staging for group 4712 the file belongs to %d", got)
			}
			// An interrupted run is completed.
			w.must(os.Chown(file, 0, 99))
			l := w.records()
			record := l.Get("v")
			record.Staged.Pending = true
			w.must(l.Put(record))
			w.restart()
			w.stage(staging)
			if got := w.groupOf(file); got != 4712 {
				t.Errorf("after a cut-short run the file belongs to %d", got)
			}
			w.unpublish(publishing)
			w.unstage(staging)
			if form.name != "export" {
				w.stage(staging)
				w.must(os.Chown(filepath.Join(staging.StagingPath, "file"), 0, 99))
				w.unstage(staging)
				staging.Settings.FSGroupChangePolicy = "OnRootMismatch"
				w.stage(staging)
				if got := w.groupOf(filepath.Join(staging.StagingPath, "file")); got != 99 {
					t.Errorf("with OnRootMismatch the file belongs to %d, although the root is right", got)
				}
				w.unstage(staging)
			}
			w.wantNothingLeft()
		})
	}
}

func TestOwnershipIsTheKubeletsWithoutDelegation(t *testing.T) {
	w := newWorld(t)
	w.directory("v")
	staging := w.stageRequest("v")
	staging.MountGroup = "4711"
	w.stage(staging)
	if got := w.groupOf(staging.StagingPath); got != 0 {
		t.Errorf("the root was given to group %d", got)
	}
	w.unstage(staging)
}

func TestStats(t *testing.T) {
	w := newWorld(t)
	w.image("v", 32)
	staging, publishing := w.stageRequest("v"), w.publishRequest("v")
	notFound := func(volume, path string) {
		t.Helper()
		_, err := w.service.Stats(w.context(), volume, path)
		w.want(err, backends.NotFound)
	}
	notFound("v", staging.StagingPath)
	w.stage(staging)
	notFound("v", publishing.TargetPath)
	w.publish(publishing)
	for _, path := range []string{"some/path", "", w.dir, filepath.Join(publishing.TargetPath, "lost+found")} {
		notFound("v", path)
	}
	notFound("unknown", publishing.TargetPath)
	before, err := w.service.Stats(w.context(), "v", publishing.TargetPath)
	w.must(err)
	w.write(filepath.Join(publishing.TargetPath, "file"), strings.Repeat("x", 4<<20))
	after, err := w.service.Stats(w.context(), "v", staging.StagingPath)
	w.must(err)
	if used := after.Bytes.Used - before.Bytes.Used; used < 4<<20 || used > 5<<20 ||
		after.Inodes.Used-before.Inodes.Used != 1 || after.Block {
		t.Errorf("a file of 4 MiB changed %+v to %+v", before, after)
	}
	if after.Bytes.Total < 24<<20 || after.Bytes.Total > 32<<20 || after.Bytes.Available <= 0 {
		t.Errorf("a filesystem of 32 MiB has %+v", after.Bytes)
	}
	w.detach(publishing.TargetPath)
	notFound("v", publishing.TargetPath)
	w.corrupt(publishing.TargetPath)
	_, err = w.service.Stats(w.context(), "v", publishing.TargetPath)
	w.want(err, backends.Unavailable)
	w.unpublish(publishing)
	w.unstage(staging)
	notFound("v", staging.StagingPath)
	w.wantNothingLeft()
}

func TestExpand(t *testing.T) {
	const grown = 600 << 20
	for _, form := range forms()[1:3] { // an ext4 grows online only with CAP_SYS_RESOURCE
		t.Run(form.name, func(t *testing.T) {
			w := newWorld(t)
			form.make(w, "v")
			staging, publishing := w.stageRequest("v"), w.publishRequest("v")
			staging.Use.FSType = form.fsType
			w.stage(staging)
			w.publish(publishing)
			request := node.ExpandRequest{Volume: "v", Path: publishing.TargetPath,
				Size: backends.CapacityRange{RequiredBytes: grown}}
			_, err := w.service.Expand(w.context(), request)
			w.want(err, backends.OutOfRange, fmt.Sprint(grown))
			w.must(os.Truncate(w.path("images", "v"), grown))
			w.restart()
			for _, path := range []string{publishing.TargetPath, staging.StagingPath} {
				request.Path = path
				if size, err := w.service.Expand(w.context(), request); size != grown || err != nil {
					t.Errorf("Expand(%s) = %d, %v; want %d", path, size, err, grown)
				}
			}
			measured, err := w.service.Stats(w.context(), "v", publishing.TargetPath)
			if err != nil || measured.Bytes.Total < 500<<20 {
				t.Errorf("after growing: %+v, %v", measured, err)
			}
			w.unpublish(publishing)
			w.unstage(staging)
			w.wantNothingLeft()
		})
	}
}

// The staging path no longer shows the volume, and a target still does: nothing there is grown.
func TestExpandOfWhatIsNotStaged(t *testing.T) {
	for _, form := range forms() {
		if form.fsType == "" {
			continue
		}
		t.Run(form.name, func(t *testing.T) {
			w := newWorld(t)
			form.make(w, "v")
			staging, publishing := w.stageRequest("v"), w.publishRequest("v")
			staging.Use.FSType = form.fsType
			w.stage(staging)
			w.publish(publishing)
			w.detach(staging.StagingPath)
			_, err := w.service.Expand(w.context(), node.ExpandRequest{Volume: "v", Path: publishing.TargetPath})
			w.want(err, backends.Unavailable, staging.StagingPath, "stage it again")
			w.unpublish(publishing)
			w.unstage(staging)
			w.wantNothingLeft()
		})
	}
}

// The kubelet binds the device of a raw volume once more, at a private path, and measures it there.
func TestDeviceIsMeasuredWhereItIsBoundAgain(t *testing.T) {
	w := newWorld(t)
	w.image("v", 16)
	w.image("other", 24)
	requests := map[string]node.PublishRequest{}
	for _, volume := range []string{"v", "other"} {
		staging, publishing := w.stageRequest(volume), w.publishRequest(volume)
		staging.Use.Type, publishing.Use.Type = backends.Block, backends.Block
		w.stage(staging)
		w.publish(publishing)
		requests[volume] = publishing
	}
	again := w.path("again")
	w.must(os.WriteFile(again, nil, 0o600))
	_, err := w.service.Stats(w.context(), "v", again)
	w.want(err, backends.NotFound, "neither staged nor published")
	w.must(unix.Mount(requests["v"].TargetPath, again, "", unix.MS_BIND, ""))
	defer func() { _ = unix.Unmount(again, unix.MNT_DETACH) }()
	got, err := w.service.Stats(w.context(), "v", again)
	if err != nil || got != (node.Stats{Bytes: node.Usage{Total: 16 << 20}, Block: true}) {
		t.Errorf("Stats(%s) = %+v, %v", again, got, err)
	}
	if issues, err := w.service.Health(w.context(), "v", again, ""); err != nil || len(issues) > 0 {
		t.Errorf("Health(%s) = %v, %v", again, issues, err)
	}
	_, err = w.service.Stats(w.context(), "other", again)
	w.want(err, backends.NotFound, "neither staged nor published")
	loop := w.path("loop")
	w.must(os.Symlink("loop", loop))
	unknown := filepath.Join(loop, "dev") // The kernel does not say what is there.
	_, err = w.service.Stats(w.context(), "v", unknown)
	w.want(err, backends.Unavailable, unknown)
	_, err = w.service.Expand(w.context(), node.ExpandRequest{Volume: "v", Path: unknown})
	w.want(err, backends.Unavailable, unknown)
	if issues, err := w.service.Health(w.context(), "v", unknown, ""); err != nil || len(issues) != 1 ||
		!strings.Contains(issues[0].Message, "too many levels") {
		t.Errorf("Health(%s) = %v, %v; want why it is not known", unknown, issues, err)
	}
	w.must(unix.Unmount(again, 0))
	for volume, publishing := range requests {
		w.unpublish(publishing)
		w.unstage(w.stageRequest(volume))
	}
	w.wantNothingLeft()
}

func TestExpandBlock(t *testing.T) {
	w := newWorld(t)
	image := w.image("v", 16)
	staging, publishing := w.stageRequest("v"), w.publishRequest("v")
	staging.Use.Type, publishing.Use.Type = backends.Block, backends.Block
	w.stage(staging)
	w.publish(publishing)
	w.must(os.Truncate(image, 24<<20))
	_, err := w.service.Expand(w.context(), node.ExpandRequest{Volume: "v", Path: publishing.TargetPath,
		Type: backends.Mount})
	w.want(err, backends.Invalid, "block")
	size, err := w.service.Expand(w.context(), node.ExpandRequest{
		Volume: "v", Path: publishing.TargetPath, Type: backends.Block, Size: backends.CapacityRange{RequiredBytes: 24 << 20},
	})
	if size != 24<<20 || err != nil {
		t.Errorf("Expand() = %d, %v; want %d", size, err, 24<<20)
	}
	for _, path := range []string{publishing.TargetPath, staging.StagingPath} {
		if got, err := w.service.Stats(w.context(), "v", path); err != nil ||
			got != (node.Stats{Bytes: node.Usage{Total: 24 << 20}, Block: true}) {
			t.Errorf("Stats(%s) = %+v, %v", path, got, err)
		}
	}
	w.unpublish(publishing)
	w.unstage(staging)
	w.wantNothingLeft()
}

// A volume without a device has no size of its own on the node. The size of the filesystem that it is on is another's.
func TestExpandWhatHasNoDevice(t *testing.T) {
	const size = 1 << 20
	for form, put := range map[string]func(w *world, name string){"export": (*world).export,
		"directory": (*world).directory} {
		t.Run(form, func(t *testing.T) {
			w := newWorld(t)
			put(w, "v")
			staging := w.stageRequest("v")
			w.stage(staging)
			for asked, want := range map[backends.CapacityRange]int64{
				{}: 0, {LimitBytes: size}: 0, {RequiredBytes: size}: size, {RequiredBytes: size, LimitBytes: 2 * size}: size,
			} {
				got, err := w.service.Expand(w.context(), node.ExpandRequest{Volume: "v", Path: staging.StagingPath, Size: asked})
				if got != want || err != nil {
					t.Errorf("Expand(%+v) = %d, %v; want %d", asked, got, err, want)
				}
			}
			w.unstage(staging)
			w.wantNothingLeft()
		})
	}
}

// A device of the node that is too small may be larger in a moment. A read-only filesystem does not grow.
func TestExpandDeviceOfTheNode(t *testing.T) {
	w := newWorld(t)
	image := w.image("v", 16)
	loop := w.attach(image)
	w.shelf.sources["v"] = backends.Device{Path: loop}
	staging := w.stageRequest("v")
	w.stage(staging)
	w.unstage(staging)
	staging.Use.Mode = backends.MultiNodeReaderOnly
	w.stage(staging)
	request := node.ExpandRequest{Volume: "v", Path: staging.StagingPath,
		Size: backends.CapacityRange{RequiredBytes: 32 << 20}}
	_, err := w.service.Expand(w.context(), request)
	w.want(err, backends.Unavailable, loop)
	w.must(os.Truncate(image, 32<<20))
	if size, err := w.service.Expand(w.context(), request); size != 32<<20 || err != nil {
		t.Errorf("Expand() = %d, %v", size, err)
	}
	if measured, err := w.service.Stats(w.context(), "v", staging.StagingPath); err != nil ||
		measured.Bytes.Total > 16<<20 {
		t.Errorf("a filesystem that is mounted read-only grew: %+v, %v", measured, err)
	}
	w.unstage(staging)
	w.must(device.Detach(w.context(), image, patience))
	w.wantNothingLeft()
}

// A volume that could not be staged has no record. It is reported with the cause until it is staged or given up (CSI,
// NodeGetVolumeHealth).
func TestHealthOfWhatCouldNotBeMadeReady(t *testing.T) {
	w := newWorld(t)
	image := w.image("v", 16)
	staging, publishing := w.stageRequest("v"), w.publishRequest("v")
	w.must(os.Truncate(image, 8<<20))
	health := func(reason, cause string) {
		t.Helper()
		issues, err := w.service.Health(w.context(), "v", publishing.TargetPath, staging.StagingPath)
		w.must(err)
		if reason == "" && len(issues) == 0 {
			return
		}
		if len(issues) == 0 || issues[0].Status != backends.Inaccessible || issues[0].Reason != reason ||
			!strings.Contains(issues[0].Message, cause) {
			t.Errorf("issues are %+v, want %s that says %q", issues, reason, cause)
		}
	}
	for range 2 {
		if err := w.service.Stage(w.context(), staging); err == nil {
			t.Fatal("a truncated image was staged")
		}
		health("StagingFailed", "8388608")
	}
	w.unstage(staging)
	_, err := w.service.Health(w.context(), "v", "", staging.StagingPath)
	w.want(err, backends.NotFound)

	w.must(os.Truncate(image, 16<<20))
	w.stage(staging)
	w.must(os.MkdirAll(publishing.TargetPath, 0o700))
	w.must(os.WriteFile(filepath.Join(publishing.TargetPath, "file"), nil, 0o600))
	if err := w.service.Publish(w.context(), publishing); err == nil {
		t.Fatal("published over a directory with files")
	}
	health("PublishingFailed", publishing.TargetPath)
	w.must(os.RemoveAll(publishing.TargetPath))
	w.publish(publishing)
	health("", "")
	w.unpublish(publishing)
	w.unstage(staging)
	w.wantNothingLeft()
}

func TestHealth(t *testing.T) {
	w := newWorld(t)
	w.image("v", 16)
	staging, publishing := w.stageRequest("v"), w.publishRequest("v")
	health := func(publishPath, stagingPath string, reasons ...string) {
		t.Helper()
		issues, err := w.service.Health(w.context(), "v", publishPath, stagingPath)
		w.must(err)
		var got []string
		for _, issue := range issues {
			got = append(got, string(issue.Status)+" "+issue.Reason)
			if issue.Message == "" {
				t.Errorf("%+v has no message", issue)
			}
		}
		if !slices.Equal(got, reasons) {
			t.Errorf("issues are %+v, want %v", issues, reasons)
		}
	}
	_, err := w.service.Health(w.context(), "v", "", "")
	w.want(err, backends.NotFound)
	w.stage(staging)
	w.publish(publishing)
	health("", "")
	health(publishing.TargetPath, staging.StagingPath)
	health(w.path("pods", "other"), w.path("staging", "other"), "INACCESSIBLE NotMounted")

	// As the kernel does after an error (ext4(5), errors=remount-ro).
	w.must(unix.Mount("", staging.StagingPath, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	health("", "", "DEGRADED FilesystemReadOnly")
	w.must(unix.Mount("", staging.StagingPath, "", unix.MS_REMOUNT, ""))
	health("", "")

	w.stack(publishing.TargetPath)
	health("", "", "INACCESSIBLE OtherMount")
	w.detach(publishing.TargetPath)
	w.detach(publishing.TargetPath)
	health("", "", "INACCESSIBLE NotMounted")
	w.corrupt(publishing.TargetPath)
	health("", "", "INACCESSIBLE MountCorrupted")
	w.detach(staging.StagingPath)
	health("", "", "INACCESSIBLE NotMounted", "INACCESSIBLE MountCorrupted")
	w.unpublish(publishing)
	w.unstage(staging)
	w.intend(staging, ledger.Source{Kind: ledger.Device, Path: w.path("images", "v"), Image: true})
	health("", "", "DEGRADED StagingUnfinished")
	w.unstage(staging)
	w.wantNothingLeft()
}

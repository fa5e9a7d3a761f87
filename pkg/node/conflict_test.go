package node_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node"
)

func TestWrongOrder(t *testing.T) {
	w := newWorld(t)
	w.directory("v")
	staging, publishing := w.stageRequest("v"), w.publishRequest("v")
	w.want(w.service.Publish(w.context(), publishing), backends.InUse, "call NodeStageVolume first",
		publishing.StagingPath)
	w.unpublish(publishing)
	w.unstage(staging)
	w.stage(staging)
	w.publish(publishing)
	w.want(w.service.Unstage(w.context(), "v", staging.StagingPath), backends.InUse, publishing.TargetPath)
	if len(w.mounts()) != 2 {
		t.Errorf("a refused Unstage left %v", w.mounts())
	}
	w.unpublish(publishing)
	w.unstage(staging)
	w.want(w.service.Publish(w.context(), publishing), backends.InUse, "call NodeStageVolume first")
	elsewhere := publishing
	elsewhere.StagingPath = w.mkdir(w.path("staging", "elsewhere"))
	w.stage(staging)
	w.want(w.service.Publish(w.context(), elsewhere), backends.InUse, "elsewhere")
	elsewhere.StagingPath = ""
	w.want(w.service.Publish(w.context(), elsewhere), backends.InUse, "staging path")
	w.unstage(staging)
	w.wantNothingLeft()
}

func TestBadRequests(t *testing.T) {
	w := newWorld(t)
	w.directory("v")
	w.image("i", 16)
	ctx := w.context()
	type stage = func(*node.StageRequest)
	for name, test := range map[string]struct {
		change stage
		kind   backends.Kind
		word   string
	}{
		"unknown volume": {func(r *node.StageRequest) { r.Volume = "unknown" }, backends.NotFound, "unknown"},
		"relative path":  {func(r *node.StageRequest) { r.StagingPath = "staging/v" }, backends.Invalid, "absolute"},
		"path with ..":   {func(r *node.StageRequest) { r.StagingPath += "/../v" }, backends.Invalid, "plain"},
		"absent path": {func(r *node.StageRequest) { r.StagingPath += "-absent" }, backends.Invalid,
			"existing directory"},
		"group is a name":       {func(r *node.StageRequest) { r.MountGroup = "wheel" }, backends.Invalid, "wheel"},
		"raw directory":         {func(r *node.StageRequest) { r.Use.Type = backends.Block }, backends.Unsupported, "mount"},
		"filesystem of its own": {func(r *node.StageRequest) { r.Use.FSType = "ext4" }, backends.Invalid, "ext4"},
		"two filesystems": {func(r *node.StageRequest) {
			r.Volume, r.Use.FSType, r.Settings.FSType = "i", "ext4", "xfs"
		}, backends.Invalid, "xfs"},
		"unsupported filesystem": {func(r *node.StageRequest) { r.Volume, r.Use.FSType = "i", "ntfs" }, backends.Invalid,
			"ntfs"},
		"no room below the path": {func(r *node.StageRequest) {
			r.StagingPath += "/" + strings.Repeat("n", 4088-len(r.StagingPath))
		}, backends.Invalid, "leaves no room"},
		"unknown policy": {func(r *node.StageRequest) {
			r.MountGroup, r.Settings.FSGroupChangePolicy = "1", "Sometimes"
		}, backends.Invalid, "Sometimes"},
	} {
		w.groups = true
		w.restart()
		request := w.stageRequest("v")
		test.change(&request)
		t.Run(name, func(*testing.T) { w.want(w.service.Stage(ctx, request), test.kind, test.word) })
	}
	w.want(w.service.Unstage(ctx, "v", "v"), backends.Invalid)
	w.want(w.service.Unpublish(ctx, "v", "v"), backends.Invalid)
	request := w.publishRequest("v")
	request.TargetPath = "v"
	w.want(w.service.Publish(ctx, request), backends.Invalid)
	w.wantNothingLeft()
}

// A target that is the staging path, or above or below it, is refused: Unpublish would unmount the staged volume.
func TestTargetsApartFromTheStagingPath(t *testing.T) {
	w := newWorld(t)
	w.directory("v")
	staging := w.stageRequest("v")
	w.stage(staging)
	publishing := w.publishRequest("v")
	for _, target := range []string{
		staging.StagingPath, filepath.Dir(staging.StagingPath), filepath.Join(staging.StagingPath, "below"),
	} {
		publishing.TargetPath = target
		w.want(w.service.Publish(w.context(), publishing), backends.Invalid, "unstage")
	}
	if len(w.mounts()) != 1 {
		t.Errorf("refused targets left %v", w.mounts())
	}
	w.unstage(staging)
	w.wantNothingLeft()
}

// A staged volume is refused in any other way, and stays as it is.
func TestStagedInAnotherWay(t *testing.T) {
	w := newWorld(t)
	w.image("v", 16)
	staging := w.stageRequest("v")
	w.stage(staging)
	w.write(filepath.Join(staging.StagingPath, "file"), "data")
	for name, change := range map[string]func(*node.StageRequest){
		"elsewhere":    func(r *node.StageRequest) { r.StagingPath = w.mkdir(r.StagingPath + "-2") },
		"raw":          func(r *node.StageRequest) { r.Use.Type = backends.Block },
		"read-only":    func(r *node.StageRequest) { r.Use.Mode = backends.SingleNodeReaderOnly },
		"ro":           func(r *node.StageRequest) { r.MountOptions = []string{"ro"} },
		"as xfs":       func(r *node.StageRequest) { r.Use.FSType = "xfs" },
		"as xfs again": func(r *node.StageRequest) { r.Settings.FSType = "xfs" },
	} {
		other := staging
		change(&other)
		t.Run(name, func(*testing.T) {
			w.want(w.service.Stage(w.context(), other), backends.Exists, "it is staged already at "+staging.StagingPath)
		})
		w.wantContent(filepath.Join(staging.StagingPath, "file"), "data")
	}
	w.unstage(staging)
	w.wantNothingLeft()
}

// A mount that belongs to something else is never unmounted, hidden or removed.
func TestSomethingElseIsThere(t *testing.T) {
	w := newWorld(t)
	w.directory("v")
	w.image("i", 16)
	foreign := w.mkdir(w.path("foreign"))
	w.write(filepath.Join(foreign, "file"), "foreign")
	for _, volume := range []string{"v", "i"} {
		staging, publishing := w.stageRequest(volume), w.publishRequest(volume)
		w.bind(foreign, staging.StagingPath)
		w.want(w.service.Stage(w.context(), staging), backends.Exists, staging.StagingPath)
		w.wantContent(filepath.Join(staging.StagingPath, "file"), "foreign")
		if volume == "i" {
			raw := staging
			raw.Use.Type = backends.Block
			w.want(w.service.Stage(w.context(), raw), backends.Exists, staging.StagingPath)
		}
		w.unstage(staging) // a caller that says that the volume is staged there is believed
		w.stage(staging)
		w.mkdir(publishing.TargetPath)
		w.bind(foreign, publishing.TargetPath)
		w.want(w.service.Publish(w.context(), publishing), backends.Exists, publishing.TargetPath)
		w.wantContent(filepath.Join(publishing.TargetPath, "file"), "foreign")
		w.unpublish(publishing)
		w.unstage(staging)
		w.wantContent(filepath.Join(foreign, "file"), "foreign")
	}
	w.wantNothingLeft()
}

// A path that is recorded for one volume is out of reach of calls for another.
func TestPathOfAnotherVolume(t *testing.T) {
	w := newWorld(t)
	w.directory("a")
	w.directory("b")
	staging, publishing := w.stageRequest("a"), w.publishRequest("a")
	w.stage(staging)
	w.publish(publishing)
	mounts := fmt.Sprint(w.mounts())
	w.must(w.service.Unpublish(w.context(), "b", publishing.TargetPath))
	w.must(w.service.Unstage(w.context(), "b", staging.StagingPath))
	w.must(w.service.Unpublish(w.context(), "b", staging.StagingPath))
	thief := staging
	thief.Volume = "b"
	w.want(w.service.Stage(w.context(), thief), backends.Exists, staging.StagingPath)
	other := w.stageRequest("b")
	w.stage(other)
	steal := w.publishRequest("b")
	steal.TargetPath = publishing.TargetPath
	w.want(w.service.Publish(w.context(), steal), backends.Exists, publishing.TargetPath)
	w.unstage(other)
	if now := fmt.Sprint(w.mounts()); now != mounts {
		t.Errorf("mounted are %s, were %s", now, mounts)
	}
	w.unpublish(publishing)
	w.unstage(staging)
	w.wantNothingLeft()
}

func TestTargets(t *testing.T) {
	w := newWorld(t)
	w.directory("v")
	staging, publishing := w.stageRequest("v"), w.publishRequest("v")
	w.stage(staging)
	precious := w.mkdir(w.path("precious"))
	w.write(filepath.Join(precious, "file"), "data")

	w.must(os.Symlink(precious, publishing.TargetPath))
	w.want(w.service.Publish(w.context(), publishing), backends.Invalid, "symlink")
	w.want(w.service.Unpublish(w.context(), "v", publishing.TargetPath), backends.Invalid)
	w.must(os.Remove(publishing.TargetPath))

	w.want(w.service.Unpublish(w.context(), "v", precious), backends.InUse, precious)
	w.want(w.service.Unpublish(w.context(), "v", filepath.Join(precious, "file")), backends.InUse, "4 bytes")
	w.wantContent(filepath.Join(precious, "file"), "data")

	absent := publishing
	absent.TargetPath = w.path("absent", "target")
	w.want(w.service.Publish(w.context(), absent), backends.Invalid, "parent")
	w.unpublish(absent)

	w.write(publishing.TargetPath, "")
	w.want(w.service.Publish(w.context(), publishing), backends.Invalid, publishing.TargetPath)
	w.unpublish(publishing) // a raw volume's target is made of an empty file

	w.mkdir(publishing.TargetPath) // as the kubelet may have done
	w.publish(publishing)
	busy, err := os.Open(publishing.TargetPath)
	w.must(err)
	w.want(w.service.Unpublish(w.context(), "v", publishing.TargetPath), backends.InUse)
	w.must(busy.Close())
	w.unpublish(publishing)
	w.unstage(staging)
	w.wantNothingLeft()
}

// A file in a user's filesystem that has the name of this driver's device file belongs to the user.
func TestUsersFileNamedDevice(t *testing.T) {
	w := newWorld(t)
	w.image("i", 16)
	w.directory("d")
	for _, volume := range []string{"i", "d"} {
		staging := w.stageRequest(volume)
		w.stage(staging)
		w.write(filepath.Join(staging.StagingPath, "device"), "")
		for range 2 {
			w.unstage(staging)
		}
		w.stage(staging)
		if !w.inspect(filepath.Join(staging.StagingPath, "device")).Exists {
			t.Errorf("volume %s lost the file named device", volume)
		}
		w.unstage(staging)
	}
	w.wantNothingLeft()
}

// The second table of NodePublishVolume in the CSI specification.
func TestSecondPublish(t *testing.T) {
	single := []backends.AccessMode{backends.SingleNodeWriter, backends.SingleNodeReaderOnly,
		backends.SingleNodeSingleWriter}
	multi := []backends.AccessMode{backends.SingleNodeMultiWriter, backends.MultiNodeReaderOnly,
		backends.MultiNodeSingleWriter, backends.MultiNodeMultiWriter}
	for _, group := range []struct {
		modes     []backends.AccessMode
		otherPath backends.Kind // Unknown for success
	}{{single, backends.InUse}, {multi, backends.Unknown}} {
		for _, mode := range group.modes {
			t.Run(string(mode), func(t *testing.T) {
				w := newWorld(t)
				w.directory("v")
				staging, first := w.stageRequest("v"), w.publishRequest("v")
				staging.Use.Mode, first.Use.Mode = mode, mode
				w.stage(staging)
				w.publish(first)
				w.publish(first)
				changed := first
				changed.ReadOnly = !first.ReadOnly
				if mode != backends.SingleNodeReaderOnly && mode != backends.MultiNodeReaderOnly {
					w.want(w.service.Publish(w.context(), changed), backends.Exists, first.TargetPath)
				}
				changed.TargetPath += "-2"
				second := first
				second.TargetPath += "-3"
				for _, request := range []node.PublishRequest{second, changed} {
					err := w.service.Publish(w.context(), request)
					if group.otherPath == backends.Unknown {
						w.must(err)
					} else {
						w.want(err, group.otherPath, first.TargetPath)
					}
				}
				w.unpublish(second)
				w.unpublish(changed)
				w.unpublish(first)
				// Once the first target is free, the volume may have another.
				w.publish(second)
				w.unpublish(second)
				w.unstage(staging)
				w.wantNothingLeft()
			})
		}
	}
}

// A target whose mount went away by itself does not count. A single-target mode does not mix with another mode.
func TestSecondPublishLooksAtTheKernel(t *testing.T) {
	w := newWorld(t)
	w.directory("v")
	staging, first := w.stageRequest("v"), w.publishRequest("v")
	w.stage(staging)
	w.publish(first)
	second := first
	second.TargetPath += "-2"
	second.Use.Mode = backends.SingleNodeSingleWriter
	w.want(w.service.Publish(w.context(), second), backends.InUse, first.TargetPath)
	w.detach(first.TargetPath)
	w.publish(second)
	changed := second
	changed.Use.Mode = backends.MultiNodeMultiWriter
	w.want(w.service.Publish(w.context(), changed), backends.Exists, "SINGLE_NODE_SINGLE_WRITER")
	raw := second
	raw.Use.Type = backends.Block
	w.want(w.service.Publish(w.context(), raw), backends.InUse, "access type")
	w.unpublish(second)
	w.unstage(staging) // although first was never unpublished
	w.unpublish(first)
	w.wantNothingLeft()
}

// The contents of a device decide, not the request.
func TestDeviceContents(t *testing.T) {
	for _, test := range []struct {
		name    string
		prepare func(w *world, image string)
		change  func(*node.StageRequest)
		words   []string // of the Invalid; none for success
		fsType  string   // after success
	}{
		{"blank", nothing, func(*node.StageRequest) {}, nil, "ext4"},
		{"blank, class says xfs", nothing, func(r *node.StageRequest) { r.Settings.FSType = "xfs" }, nil, "xfs"},
		{"blank, capability says btrfs", nothing, func(r *node.StageRequest) { r.Use.FSType = "btrfs" }, nil, "btrfs"},
		{"blank, both say xfs", nothing, func(r *node.StageRequest) { r.Use.FSType, r.Settings.FSType = "xfs", "xfs" }, nil,
			"xfs"},
		{"blank for one reader", nothing, func(r *node.StageRequest) { r.Use.Mode = backends.SingleNodeReaderOnly },
			[]string{"reading only"}, ""},
		{"blank for many readers", nothing, func(r *node.StageRequest) { r.Use.Mode = backends.MultiNodeReaderOnly },
			[]string{"reading only"}, ""},
		{"blank with ro", nothing, func(r *node.StageRequest) { r.MountOptions = []string{"ro"} }, []string{"reading only"},
			""},
		{"xfs, nothing asked", formatted("xfs"), func(*node.StageRequest) {}, nil, "xfs"},
		{"xfs, ext4 asked", formatted("xfs"), func(r *node.StageRequest) { r.Use.FSType = "ext4" },
			[]string{"holds xfs", "ext4"}, ""},
		{"ext4, xfs asked", formatted("ext4"), func(r *node.StageRequest) { r.Settings.FSType = "xfs" },
			[]string{"holds ext4", "xfs"}, ""},
		{"unknown data", garbage, func(*node.StageRequest) {}, []string{"unknown data"}, ""},
		{"unknown data, ext4 asked", garbage, func(r *node.StageRequest) { r.Use.FSType = "ext4" },
			[]string{"unknown data", "ext4"}, ""},
		{"blank, no filesystem's name", nothing, func(r *node.StageRequest) { r.Use.FSType = "../x" },
			[]string{`"../x" is not supported`}, ""},
		{"blank, option not allowed", nothing, func(r *node.StageRequest) { r.MountOptions = []string{"errors=panic"} },
			[]string{"errors=panic", "not allowed for ext4"}, ""},
		{"blank, option of ext4 for xfs", nothing,
			func(r *node.StageRequest) { r.Use.FSType, r.MountOptions = "xfs", []string{"data=journal"} },
			[]string{"data=journal", "xfs"}, ""},
		{"swap", swap, func(*node.StageRequest) {}, []string{"swap"}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			size := int64(16)
			if strings.Contains(test.name, "xfs") || strings.Contains(test.name, "btrfs") {
				size = 300
			}
			image := w.image("v", size)
			test.prepare(w, image)
			before := checksum(t, image)
			staging := w.stageRequest("v")
			test.change(&staging)
			err := w.service.Stage(w.context(), staging)
			if test.words != nil {
				w.want(err, backends.Invalid, test.words...)
				if checksum(t, image) != before {
					t.Error("the refused device was written to")
				}
				w.wantNothingLeft()
				return
			}
			w.must(err)
			if got := w.fsTypeAt(staging.StagingPath); got != test.fsType {
				t.Errorf("a %s is mounted, want %s", got, test.fsType)
			}
			w.unstage(staging)
			w.wantNothingLeft()
		})
	}
}

func nothing(*world, string) {}

func garbage(w *world, image string) {
	file, err := os.OpenFile(image, os.O_WRONLY, 0)
	w.must(err)
	_, err = file.WriteAt([]byte(strings.Repeat("somebody's data", 100)), 0)
	w.must(errors.Join(err, file.Close()))
}

func swap(w *world, image string) {
	file, err := os.OpenFile(image, os.O_WRONLY, 0)
	w.must(err)
	_, err = file.WriteAt([]byte("SWAPSPACE2"), 4096-10)
	w.must(errors.Join(err, file.Close()))
}

// formatted creates the filesystem by staging the volume once.
func formatted(fsType string) func(*world, string) {
	return func(w *world, _ string) {
		request := w.stageRequest("v")
		request.Use.FSType = fsType
		w.stage(request)
		w.unstage(request)
	}
}

func TestBackendFails(t *testing.T) {
	w := newWorld(t)
	w.directory("v")
	w.shelf.failure = backends.Errorf(backends.Unavailable, "the storage is away")
	staging := w.stageRequest("v")
	w.want(w.service.Stage(w.context(), staging), backends.Unavailable, "the storage is away", `"v"`)
	w.want(w.service.Unstage(w.context(), "v", staging.StagingPath), backends.Unavailable)
	if _, err := w.service.Info(w.context()); !backends.Is(err, backends.Unavailable) {
		t.Errorf("Info gave %v", err)
	}
	if _, err := w.service.StorageHealth(w.context()); !backends.Is(err, backends.Unavailable) {
		t.Errorf("StorageHealth gave %v", err)
	}
	w.shelf.failure = nil
	w.wantNothingLeft()
}

// A call whose time is over leaves nothing, and can be retried.
func TestCancelled(t *testing.T) {
	w := newWorld(t)
	w.image("v", 16)
	staging, publishing := w.stageRequest("v"), w.publishRequest("v")
	over, cancel := context.WithCancel(w.context())
	cancel()
	w.want(w.service.Stage(over, staging), backends.Unavailable)
	w.wantNothingLeft()
	w.stage(staging)
	w.want(w.service.Publish(over, publishing), backends.Unavailable)
	w.publish(publishing)
	w.want(w.service.Unpublish(over, "v", publishing.TargetPath), backends.Unavailable)
	w.unpublish(publishing)
	w.want(w.service.Unstage(over, "v", staging.StagingPath), backends.Unavailable)
	w.unstage(staging)
	w.wantNothingLeft()
}

func TestInfo(t *testing.T) {
	w := newWorld(t)
	info, err := w.service.Info(w.context())
	if err != nil || info.NodeID != "node-1" || info.MaxVolumes != 7 || info.Topology["zone"] != "a" {
		t.Errorf("Info() = %+v, %v", info, err)
	}
	issues, err := w.service.StorageHealth(w.context())
	if err != nil || len(issues) != 1 {
		t.Errorf("StorageHealth() = %v, %v", issues, err)
	}
	bare, err := node.New(w.context(), node.Config{Backend: w.shelf, NodeID: "bare", StateDir: w.path("bare")})
	w.must(err)
	if info, err := bare.Info(w.context()); err != nil || info.NodeID != "bare" || info.MaxVolumes != 0 ||
		info.Topology != nil {
		t.Errorf("without features Info() = %+v, %v", info, err)
	}
	if issues, err := bare.StorageHealth(w.context()); issues != nil || err != nil {
		t.Errorf("without features StorageHealth() = %v, %v", issues, err)
	}
	file := w.path("file")
	w.write(file, "")
	if _, err := node.New(w.context(),
		node.Config{Backend: w.shelf, StateDir: file}); !backends.Is(err, backends.Unavailable) {
		t.Errorf("New with a file as its directory gave %v, want Unavailable", err)
	}
}

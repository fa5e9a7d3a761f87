package hotplug

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/node"
	"github.com/stowage-csi/stowage/tests/vm/hotplug"
	"github.com/stowage-csi/stowage/tests/vm/inside"
)

const mib = 1 << 20

func TestMain(m *testing.M) { os.Exit(inside.Main(m)) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// cloud is a minimal backend with disks: it knows which disk the volume is.
type cloud struct{ device backends.Device }

func (c *cloud) Source(context.Context, backends.Attachment) (backends.Source, error) {
	return c.device, nil
}

func connect(t *testing.T) *hotplug.Machine {
	t.Helper()
	machine, err := hotplug.Connect(t.Context())
	must(t, err)
	t.Cleanup(func() {
		if err := machine.Close(); err != nil {
			t.Error(err)
		}
	})
	return machine
}

func service(t *testing.T, c *cloud) *node.Service {
	t.Helper()
	s, err := node.New(t.Context(), node.Config{Backend: c, Features: backends.Resolve(nil, c), NodeID: "guest",
		StateDir: filepath.Join(t.TempDir(), "state")})
	must(t, err)
	return s
}

// A disk is plugged in, used, and unplugged. It is never used in place of another disk, or when it is too small.
func TestDisk(t *testing.T) {
	for _, disk := range []hotplug.Disk{
		{Model: hotplug.NVMe, Serial: "vol0123456789abcdef0", Bytes: 64 * mib},
		// OpenStack's serial is the volume's UUID, of which virtio keeps 20 characters.
		{Model: hotplug.Virtio, Serial: "6f1ed002-ab5f-11ee-9", Bytes: 64 * mib},
	} {
		t.Run(string(disk.Model), func(t *testing.T) { testDisk(t, disk) })
	}
}

func testDisk(t *testing.T, disk hotplug.Disk) {
	ctx := t.Context()
	plugged, err := connect(t).Plug(ctx, disk)
	must(t, err)
	t.Logf("it is %s", plugged.Path)
	identity := backends.Identity{Serial: disk.Serial, SizeBytes: disk.Bytes}
	c := &cloud{}
	s := service(t, c)
	use := node.Use{Type: backends.Mount, Mode: backends.SingleNodeWriter, FSType: "ext4"}
	stage := node.StageRequest{Volume: "v", StagingPath: t.TempDir(), Use: use}

	for what, wrong := range map[string]backends.Identity{
		"another serial": {Serial: "vol0000000000000000f", SizeBytes: disk.Bytes},
		"a larger size":  {Serial: disk.Serial, SizeBytes: 2 * disk.Bytes},
	} {
		c.device = backends.Device{Path: plugged.Path, Identity: wrong}
		if err := s.Stage(ctx, stage); err == nil {
			t.Fatalf("a disk was staged that should have had %s", what)
		} else {
			t.Logf("%s: %v", what, err)
		}
		if text, err := os.ReadFile(plugged.Path); err != nil || !blank(text) {
			t.Fatalf("a disk was written to that should have had %s (%v)", what, err)
		}
	}

	c.device = backends.Device{Path: plugged.Path, Identity: identity}
	must(t, s.Stage(ctx, stage))
	target := filepath.Join(t.TempDir(), "target")
	must(t, s.Publish(ctx, node.PublishRequest{Volume: "v", StagingPath: stage.StagingPath, TargetPath: target, Use: use}))
	must(t, os.WriteFile(filepath.Join(target, "file"), []byte(disk.Serial), 0o600))
	if disk.Model == hotplug.Virtio {
		grow(t, s, plugged, target)
	}
	must(t, s.Unpublish(ctx, "v", target))
	must(t, s.Unstage(ctx, "v", stage.StagingPath))
	must(t, plugged.Unplug(ctx))
}

// grow grows the disk while it is in use, and then its filesystem.
func grow(t *testing.T, s *node.Service, disk *hotplug.Plugged, target string) {
	t.Helper()
	size := 2 * disk.Bytes
	must(t, disk.Grow(size))
	got, err := s.Expand(t.Context(), node.ExpandRequest{Volume: "v", Path: target,
		Size: backends.CapacityRange{RequiredBytes: size}})
	if err != nil || got != size {
		t.Fatalf("Expand answers %d (%v), want %d", got, err, size)
	}
	var stat unix.Statfs_t
	must(t, unix.Statfs(target, &stat))
	if bytes := int64(stat.Blocks) * stat.Bsize; bytes < size*85/100 {
		t.Errorf("the pod sees %d bytes, want nearly %d", bytes, size)
	}
}

func blank(text []byte) bool {
	for _, b := range text {
		if b != 0 {
			return false
		}
	}
	return true
}

// A disk is unplugged just after it was plugged in: the guest may not have finished the addition when it learns of the
// removal.
func TestDiskIsGoneAtOnce(t *testing.T) {
	machine := connect(t)
	for round := range 6 {
		plugged, err := machine.Plug(t.Context(), hotplug.Disk{Model: hotplug.NVMe, Serial: fmt.Sprint("vol-", round),
			Bytes: 64 * mib})
		must(t, err)
		began := time.Now()
		must(t, plugged.Unplug(t.Context()))
		t.Logf("gone after %v", time.Since(began).Round(time.Millisecond))
	}
}

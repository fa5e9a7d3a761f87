package stall_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stowage-csi/stowage/tests/inprocess"
	"github.com/stowage-csi/stowage/tests/stall"
)

// volume is a volume on its way through a whole driver.
type volume struct {
	*testing.T
	controller csi.ControllerClient
	node       csi.NodeClient
	dir, id    string
	context    map[string]string
}

func capability() *csi.VolumeCapability {
	return &csi.VolumeCapability{
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{FsType: "ext4"}},
	}
}

func create(t *testing.T, driver *inprocess.Driver, pool string) *volume {
	t.Helper()
	v := &volume{T: t, controller: csi.NewControllerClient(driver.Conn), node: csi.NewNodeClient(driver.Conn),
		dir: t.TempDir()}
	made, err := v.controller.CreateVolume(t.Context(), &csi.CreateVolumeRequest{
		Name: "volume-in-" + pool, Parameters: map[string]string{"pool": pool},
		VolumeCapabilities: []*csi.VolumeCapability{capability()},
		CapacityRange:      &csi.CapacityRange{RequiredBytes: 32 << 20},
	})
	if err != nil {
		t.Fatal(err)
	}
	v.id, v.context = made.GetVolume().GetVolumeId(), made.GetVolume().GetVolumeContext()
	if err := os.Mkdir(v.staging(), 0o755); err != nil {
		t.Fatal(err)
	}
	return v
}

func (v *volume) staging() string { return filepath.Join(v.dir, "staging") }
func (v *volume) target() string  { return filepath.Join(v.dir, "target") }

// call makes a call by its name, with a time limit.
func (v *volume) call(name string, limit time.Duration) (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(v.Context()), limit)
	defer cancel()
	switch name {
	case "stage":
		_, err = v.node.NodeStageVolume(ctx, &csi.NodeStageVolumeRequest{
			VolumeId: v.id, StagingTargetPath: v.staging(), VolumeCapability: capability(), VolumeContext: v.context,
		})
	case "publish":
		_, err = v.node.NodePublishVolume(ctx, &csi.NodePublishVolumeRequest{
			VolumeId: v.id, StagingTargetPath: v.staging(), TargetPath: v.target(), VolumeCapability: capability(),
			VolumeContext: v.context,
		})
	case "unpublish":
		_, err = v.node.NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: v.id, TargetPath: v.target()})
	case "unstage":
		_, err = v.node.NodeUnstageVolume(ctx, &csi.NodeUnstageVolumeRequest{VolumeId: v.id, StagingTargetPath: v.staging()})
	case "delete":
		_, err = v.controller.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: v.id})
	default:
		err = fmt.Errorf("no call %q", name)
	}
	return err
}

// persist retries the calls as an orchestrator does.
func (v *volume) persist(names ...string) {
	v.Helper()
	for _, name := range names {
		for until := time.Now().Add(2 * time.Minute); ; {
			err := v.call(name, 5*time.Second)
			if err == nil {
				break
			}
			if time.Now().After(until) {
				v.Errorf("%s does not succeed: %v", name, err)
				return
			}
			<-time.After(20 * time.Millisecond)
		}
	}
}

// again repeats a call that was given up before. The lock must soon be free.
func again(t *testing.T, v *volume, name string) {
	t.Helper()
	for begun := time.Now(); ; <-time.After(100 * time.Millisecond) {
		err := v.call(name, 5*time.Second)
		switch code := status.Code(err); {
		case code == codes.Aborted && time.Since(begun) < 2*time.Minute: // of a busy machine
			continue
		case code == codes.Aborted || code == codes.OK:
			t.Errorf("%s again ended with %v", name, err)
		}
		t.Logf("%s again, after %s: %v", name, time.Since(begun), err)
		return
	}
}

// The lock of a volume on a server that stops is free soon after each deadline: the next call is answered with the
// actual failure, and not turned away because another call is under way. A volume on another pool is not affected.
func TestLockIsFreed(t *testing.T) {
	server := stall.Serve(t)
	config := fmt.Sprintf("pools:\n- {name: slow, type: image, path: %s}\n- {name: quick, type: image, path: %s}\n",
		filepath.Join(server.Dir, "pool"), t.TempDir())
	driver := inprocess.Start(t, inprocess.Options{Backend: "local", Config: config})
	slow, quick := create(t, driver, "slow"), create(t, driver, "quick")
	t.Cleanup(func() {
		server.Continue(t)
		slow.persist("unpublish", "unstage", "delete")
	})
	// A formatted volume needs no tool any more. No tool can be started while a file on a FUSE filesystem that does not
	// answer is open, such as that of the pool's lock (docs/design/007-time.md).
	quick.persist("stage", "unstage")
	server.Stop(t)
	for _, name := range []string{"stage", "unstage", "stage", "unstage"} {
		const limit = time.Second
		if code := status.Code(slow.call(name, limit)); code != codes.DeadlineExceeded && code != codes.Unavailable {
			t.Errorf("%s ended with %s, want DeadlineExceeded or Unavailable", name, code)
		}
		again(t, slow, name)
		quick.persist("stage", "publish", "unpublish", "unstage")
	}
	quick.persist("delete")
	server.Continue(t)
	slow.persist("stage", "publish")
	if err := os.WriteFile(filepath.Join(slow.target(), "file"), []byte("data"), 0o600); err != nil {
		t.Error(err)
	}
}

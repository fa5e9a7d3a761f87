package driver

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/tests/testfs"
)

// folders is a backend of directories that does not know whether they are used: Delete removes any of them.
type folders struct {
	backends.Backend
	root string
}

func (f folders) Source(_ context.Context, a backends.Attachment) (backends.Source, error) {
	return backends.Directory{Path: filepath.Join(f.root, a.Handle)}, nil
}

func (f folders) Delete(_ context.Context, handle string) error {
	return os.RemoveAll(filepath.Join(f.root, handle))
}

// TestWhatThisNodeUsesIsNotDeleted runs a controller and a node in one process.
func TestWhatThisNodeUsesIsNotDeleted(t *testing.T) {
	testfs.NeedRoot(t)
	backend := folders{root: t.TempDir()}
	kept := filepath.Join(backend.root, "v", "file")
	if err := os.MkdirAll(filepath.Dir(kept), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(kept, []byte("data"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serveConfig(t, Config{
		Instance: &backends.Instance{Controller: backend, Node: backend}, NodeID: "node-1", StateDir: t.TempDir(),
		Log: slog.New(slog.DiscardHandler),
	}, time.Second)
	node := csi.NewNodeClient(s.connection)
	staging, target := filepath.Join(t.TempDir(), "staging"), filepath.Join(t.TempDir(), "target")
	if err := os.Mkdir(staging, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // Only after a failure, something is left.
		_ = unix.Unmount(target, 0)
		_ = unix.Unmount(staging, 0)
	})
	capability := &csi.VolumeCapability{
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
	}
	steps := []struct {
		what string
		do   func() error
		used []string // what Delete's refusal must name afterwards
	}{
		{"NodeStageVolume", func() error {
			_, err := node.NodeStageVolume(t.Context(), &csi.NodeStageVolumeRequest{VolumeId: "v", StagingTargetPath: staging,
				VolumeCapability: capability})
			return err
		}, []string{staging, "node-1"}},
		{"NodePublishVolume", func() error {
			_, err := node.NodePublishVolume(t.Context(), &csi.NodePublishVolumeRequest{
				VolumeId: "v", StagingTargetPath: staging, TargetPath: target, VolumeCapability: capability,
			})
			return err
		}, []string{staging, target}},
		{"NodeUnpublishVolume", func() error {
			_, err := node.NodeUnpublishVolume(t.Context(), &csi.NodeUnpublishVolumeRequest{VolumeId: "v", TargetPath: target})
			return err
		}, []string{staging}},
		{"NodeUnstageVolume", func() error {
			_, err := node.NodeUnstageVolume(t.Context(), &csi.NodeUnstageVolumeRequest{VolumeId: "v",
				StagingTargetPath: staging})
			return err
		}, nil},
	}
	for _, step := range steps {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.what, err)
		}
		if step.used == nil {
			break
		}
		err := <-s.delete(t)
		if status.Code(err) != codes.FailedPrecondition {
			t.Errorf("after %s DeleteVolume is answered %v, want FailedPrecondition", step.what, err)
		}
		for _, place := range step.used {
			if err != nil && !strings.Contains(err.Error(), place) {
				t.Errorf("after %s the refusal %q does not name %s", step.what, err, place)
			}
		}
		if data, err := os.ReadFile(kept); err != nil || string(data) != "data" {
			t.Errorf("after %s the volume has %q, %v", step.what, data, err)
		}
	}
	if err := <-s.delete(t); err != nil {
		t.Errorf("DeleteVolume of what is in use no longer: %v", err)
	}
}

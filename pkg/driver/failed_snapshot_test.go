package driver

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/status"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// givenUp is a backend with a snapshot that failed after its handle was returned.
type givenUp struct {
	backends.Backend
	backends.Snapshotter
}

func (givenUp) CreateSnapshot(context.Context, backends.SnapshotSpec) (*backends.Snapshot, error) {
	return nil, backends.Errorf(backends.Exists, "there is one")
}

func (givenUp) FindSnapshot(context.Context, backends.SnapshotSpec) (*backends.Snapshot, error) {
	return nil, backends.Errorf(backends.Exists, "snap-1 failed: take another")
}

// TestFailedSnapshotCanBeDeleted: csi-snapshotter does not delete a VolumeSnapshotContent, not even one with a handle,
// before its last CreateSnapshot has a final answer.
func TestFailedSnapshotCanBeDeleted(t *testing.T) {
	s := serve(t, givenUp{}, time.Second)
	_, err := s.client.CreateSnapshot(t.Context(), &csi.CreateSnapshotRequest{Name: "s", SourceVolumeId: "v"})
	snapshotter := callerOf(t, "CreateSnapshot")
	if slices.Contains(snapshotter.open, status.Code(err)) || !strings.Contains(status.Convert(err).Message(), "snap-1") {
		t.Errorf("got %v, want what %s takes for final, with the sentence", err, snapshotter.name)
	}
}

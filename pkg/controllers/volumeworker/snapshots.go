package volumeworker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/controllers/csiclient"
)

// Snapshots returns an Agent for the LocalSnapshots of a node.
func Snapshots(o Options, live client.Reader, write client.Client) *Agent[*v1alpha1.LocalSnapshot] {
	empty := func() *v1alpha1.LocalSnapshot { return &v1alpha1.LocalSnapshot{} }
	return &Agent[*v1alpha1.LocalSnapshot]{Options: o, live: live, write: write, empty: empty, hand: snapshots{o.Driver},
		changed: func() {}}
}

// snapshotDriver takes snapshots.
type snapshotDriver interface {
	Place(ctx context.Context) (map[string]string, error)
	TakeSnapshot(ctx context.Context, w csiclient.SnapshotWanted) (csiclient.Snapshot, error)
	DeleteSnapshot(ctx context.Context, handle string) error
}

// snapshots asks the driver for snapshots.
type snapshots struct{ snapshotDriver }

var errNotReady = errors.New("the snapshot is taken, and cannot be restored yet")

func (s snapshots) create(ctx context.Context, o *v1alpha1.LocalSnapshot) outcome {
	place, err := s.Place(ctx)
	if err != nil {
		return outcome{err: err, isOpen: true}
	}
	taken, err := s.TakeSnapshot(ctx, csiclient.SnapshotWanted{Name: o.Spec.SnapshotName, Volume: o.Spec.Volume,
		Parameters: o.Spec.Parameters, Segments: place})
	switch {
	case err != nil && csiclient.IsAbsent(err):
		return outcome{state: v1alpha1.StateAbsent, err: err}
	case err != nil:
		return outcome{err: err}
	case taken.Volume != o.Spec.Volume:
		return outcome{err: fmt.Errorf("the driver has a snapshot %q of the volume %q, where one of %q is wanted",
			taken.Handle, taken.Volume, o.Spec.Volume)}
	case taken.Handle != o.Name:
		return outcome{err: otherHandle(taken.Handle, o.Spec.SnapshotName, o.Name)}
	case !taken.IsReady:
		return outcome{err: errNotReady, isOpen: true}
	}
	return outcome{state: v1alpha1.StateReady, note: func() {
		o.Status.Size = v1alpha1.NewSize(taken.SizeBytes)
		o.Status.TakenAt = takenAt(taken.TakenAt)
	}}
}

// takenAt formats a time for a status.
func takenAt(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) }

// adapt does nothing: a snapshot never changes.
func (s snapshots) adapt(_ context.Context, o *v1alpha1.LocalSnapshot) outcome {
	return outcome{state: o.Status.State}
}

func (s snapshots) remove(ctx context.Context, o *v1alpha1.LocalSnapshot) error {
	return s.DeleteSnapshot(ctx, o.Name)
}

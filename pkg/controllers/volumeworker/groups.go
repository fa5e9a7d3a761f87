package volumeworker

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/controllers/csiclient"
)

// Groups returns an Agent for the LocalSnapshotGroups of a node.
func Groups(o Options, live client.Reader, write client.Client) *Agent[*v1alpha1.LocalSnapshotGroup] {
	empty := func() *v1alpha1.LocalSnapshotGroup { return &v1alpha1.LocalSnapshotGroup{} }
	return &Agent[*v1alpha1.LocalSnapshotGroup]{Options: o, live: live, write: write, empty: empty,
		hand: groups{o.Driver}, changed: func() {}}
}

// groupDriver takes groups of snapshots.
type groupDriver interface {
	TakeGroup(ctx context.Context, w csiclient.GroupWanted) (csiclient.Group, error)
	DeleteGroup(ctx context.Context, handle string, members []string) error
}

// groups asks the driver for groups of snapshots.
type groups struct{ groupDriver }

func (g groups) create(ctx context.Context, o *v1alpha1.LocalSnapshotGroup) outcome {
	taken, err := g.TakeGroup(ctx, csiclient.GroupWanted{Name: o.Spec.GroupName, Volumes: volumesOf(o),
		Parameters: o.Spec.Parameters})
	switch {
	case err != nil && csiclient.IsAbsent(err):
		return outcome{state: v1alpha1.StateAbsent, err: err}
	case err != nil:
		return outcome{err: err}
	case taken.Handle != o.Name:
		return outcome{err: otherHandle(taken.Handle, o.Spec.GroupName, o.Name)}
	case !slices.EqualFunc(taken.Snapshots, o.Spec.Members, isMember):
		return outcome{err: fmt.Errorf("the driver has the group of the snapshots %+v, where %+v are wanted, in this order",
			taken.Snapshots, o.Spec.Members)}
	case !taken.IsReady:
		return outcome{err: errNotReady, isOpen: true}
	}
	return outcome{state: v1alpha1.StateReady, note: func() {
		o.Status.Sizes = nil
		for _, s := range taken.Snapshots {
			o.Status.Sizes = append(o.Status.Sizes, v1alpha1.NewSize(s.SizeBytes))
		}
		o.Status.TakenAt = takenAt(taken.TakenAt)
	}}
}

// adapt does nothing: a group never changes.
func (g groups) adapt(_ context.Context, o *v1alpha1.LocalSnapshotGroup) outcome {
	return outcome{state: o.Status.State}
}

// remove deletes a group. A driver that does not support groups at present may still have one, or prove that it has
// none.
func (g groups) remove(ctx context.Context, o *v1alpha1.LocalSnapshotGroup) error {
	err := g.DeleteGroup(ctx, o.Name, membersOf(o))
	if csiclient.IsUnimplemented(err) && g.create(ctx, o).state == v1alpha1.StateAbsent {
		return nil
	}
	return err
}

func isMember(s csiclient.Snapshot, m v1alpha1.GroupMember) bool {
	return s.Handle == m.Snapshot && s.Volume == m.Volume
}

// volumesOf returns the handles of the volumes.
func volumesOf(o *v1alpha1.LocalSnapshotGroup) (handles []string) {
	for _, m := range o.Spec.Members {
		handles = append(handles, m.Volume)
	}
	return handles
}

// membersOf returns the handles of the snapshots.
func membersOf(o *v1alpha1.LocalSnapshotGroup) (handles []string) {
	for _, m := range o.Spec.Members {
		handles = append(handles, m.Snapshot)
	}
	return handles
}

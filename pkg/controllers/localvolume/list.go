package localvolume

import (
	"context"
	"slices"
	"strings"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/pagetoken"
)

// List returns the volumes in the order of their handles, including those that are being created or deleted.
func (m *Master) List(ctx context.Context, page backends.Page) (volumes []backends.Volume, next string, err error) {
	all, err := m.volumes.all(ctx)
	if err != nil {
		return nil, "", err
	}
	there := slices.DeleteFunc(all, func(o *v1alpha1.LocalVolume) bool { return isOver(o) })
	there, next, err = paged(there, page, m.volumes.isHandle, func(o *v1alpha1.LocalVolume) string { return o.Name })
	for _, o := range there {
		volumes = append(volumes, *m.describe(o))
	}
	return volumes, next, err
}

// ListSnapshots returns the snapshots of one volume or of all in the order of their handles, including those that are
// being deleted and the members of groups.
func (m *Master) ListSnapshots(ctx context.Context, volume string, page backends.Page) (
	snapshots []backends.Snapshot, next string, err error) {
	all, err := m.snapshots.all(ctx)
	if err != nil {
		return nil, "", err
	}
	groups, err := m.groups.all(ctx)
	if err != nil {
		return nil, "", err
	}
	for _, o := range all {
		if !isOver(o) && m.snapshots.isMade(o) {
			snapshots = append(snapshots, *m.describeSnapshot(o))
		}
	}
	for _, o := range groups {
		if !isOver(o) && isGroupMade(o) {
			snapshots = append(snapshots, m.describeGroup(o).Snapshots...)
		}
	}
	snapshots = slices.DeleteFunc(snapshots,
		func(s backends.Snapshot) bool { return volume != "" && s.Volume != volume })
	return paged(snapshots, page, m.snapshots.isHandle, func(s backends.Snapshot) string { return s.Handle })
}

// paged returns a page of all, in the order of their handles.
func paged[T any](all []T, page backends.Page, isHandle func(string) bool, handleOf func(T) string) (
	found []T, next string, err error) {
	after, err := pagetoken.Parse(page.Token, isHandle)
	if err != nil {
		return nil, "", err
	}
	found = slices.DeleteFunc(all, func(t T) bool { return handleOf(t) <= after })
	slices.SortFunc(found, func(a, b T) int { return strings.Compare(handleOf(a), handleOf(b)) })
	found, next = pagetoken.Cut(found, page.Limit, handleOf)
	return found, next, nil
}

package localvolume

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/backends"
)

// member returns the group member with the handle. Kinds: NotFound; Unusable; Busy.
func (m *Master) member(ctx context.Context, handle string) (*backends.Snapshot, error) {
	o, err := m.groupWith(ctx, handle)
	switch {
	case err != nil:
		return nil, err
	case o == nil || isOver(o) || indexOf(o, handle) < 0:
		return nil, m.snapshots.notFound(handle)
	}
	if err := m.groups.checkUsable(o.Name, o); err != nil {
		return nil, err
	}
	return m.describeMember(o, indexOf(o, handle)), nil
}

// groupWith returns the group that a snapshot belongs to, or nil. The cache may lack a group that was just created, and
// contain one that is gone.
func (m *Master) groupWith(ctx context.Context, handle string) (*v1alpha1.LocalSnapshotGroup, error) {
	if !m.snapshots.isHandle(handle) {
		return nil, nil
	}
	for _, reader := range []client.Reader{m.cache, m.live} {
		all, err := m.listGroups(ctx, reader)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(all, func(o *v1alpha1.LocalSnapshotGroup) bool { return indexOf(o, handle) >= 0 })
		if i >= 0 {
			return m.groups.get(ctx, all[i].Name)
		}
	}
	return nil, nil
}

func (m *Master) listGroups(ctx context.Context, from client.Reader, which ...client.ListOption) (
	[]*v1alpha1.LocalSnapshotGroup, error) {
	var list v1alpha1.LocalSnapshotGroupList
	err := m.list(ctx, from, &list, which...)
	return pointers(list.Items), err
}

// indexOf returns the index of a snapshot among the members of a group, or -1 if it is not a member.
func indexOf(o *v1alpha1.LocalSnapshotGroup, handle string) int {
	return slices.IndexFunc(o.Spec.Members, func(m v1alpha1.GroupMember) bool { return m.Snapshot == handle })
}

package localvolume

import (
	"context"
	"maps"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/backends"
)

// CreateGroup makes the node of the volumes take snapshots of all of them at one instant.
func (m *Master) CreateGroup(ctx context.Context, spec backends.GroupSpec) (*backends.Group, error) {
	handle := m.GroupHandle(spec.Name)
	taker := &groupMaker{Master: m, spec: spec, handle: handle,
		onlyNode: onlyNode[*v1alpha1.LocalSnapshotGroup]{of: &m.groups}}
	o, err := (&creation[*v1alpha1.LocalSnapshotGroup]{orders: &m.groups, maker: taker, handle: handle}).run(ctx)
	if err != nil {
		return nil, err
	}
	return m.describeGroup(o), nil
}

// FindGroup returns the group of the name.
func (m *Master) FindGroup(ctx context.Context, name string) (*backends.Group, error) {
	return m.GetGroup(ctx, m.GroupHandle(name))
}

// GetGroup returns the group with the handle.
func (m *Master) GetGroup(ctx context.Context, handle string) (*backends.Group, error) {
	o, err := m.groups.find(ctx, handle)
	if err != nil {
		return nil, err
	}
	return m.describeGroup(o), nil
}

// DeleteGroup makes the node remove the group with all its snapshots.
func (m *Master) DeleteGroup(ctx context.Context, handle string) error {
	return remove(ctx, &m.groups, handle)
}

// groupMaker takes a group of snapshots.
type groupMaker struct {
	*Master
	onlyNode[*v1alpha1.LocalSnapshotGroup]
	spec   backends.GroupSpec
	handle string
}

func (g *groupMaker) begin(ctx context.Context) (types.UID, error) {
	node, err := g.node(ctx)
	if err != nil {
		return "", err
	}
	if err := g.checkHeard(node); err != nil {
		return "", err
	}
	o := &v1alpha1.LocalSnapshotGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace, Name: g.handle, Finalizers: []string{finalizer}},
		Spec: v1alpha1.LocalSnapshotGroupSpec{
			Order: v1alpha1.Order{Node: node, Attempt: 1}, GroupName: g.spec.Name, Members: g.members(),
			Parameters: encoded(g.spec.Parameters), Fingerprint: g.spec.Fingerprint,
		},
	}
	return g.create(ctx, o)
}

// node returns the node that has all volumes. Kinds: Invalid for a wrong list; NotFound; InUse when no node has all of
// them.
func (g *groupMaker) node(ctx context.Context) (node string, err error) {
	if len(g.spec.Volumes) == 0 {
		return "", backends.Errorf(backends.Invalid, "the group names no volume: name at least one")
	}
	if n := len(g.spec.Volumes); n > backends.MostMembers {
		return "", backends.Errorf(backends.Invalid, "the group names %d volumes: name at most %d", n,
			backends.MostMembers)
	}
	for i, handle := range g.spec.Volumes {
		if slices.Contains(g.spec.Volumes[:i], handle) {
			return "", backends.Errorf(backends.Invalid, "volume %q is named twice: name it once", handle)
		}
		v, err := g.volumes.find(ctx, handle)
		if err != nil {
			return "", backends.Errorf(backends.KindOf(err), "volume %q: %w", handle, err)
		}
		if node != "" && v.Spec.Node != node {
			return "", backends.Errorf(backends.InUse, "volumes %s and %s are on the nodes %s and %s: a group must be of one "+
				"node", g.spec.Volumes[0], handle, node, v.Spec.Node)
		}
		node = v.Spec.Node
	}
	return node, nil
}

// members returns the snapshots with the handles that the node's driver gives them.
func (g *groupMaker) members() (all []v1alpha1.GroupMember) {
	for i, volume := range g.spec.Volumes {
		all = append(all, v1alpha1.GroupMember{Volume: volume, Snapshot: g.MemberHandle(g.handle, i)})
	}
	return all
}

func (g *groupMaker) fits(o *v1alpha1.LocalSnapshotGroup) bool {
	return g.silent == "" && slices.Equal(o.Spec.Members, g.members()) && o.Spec.Fingerprint == g.spec.Fingerprint &&
		maps.Equal(o.Spec.Parameters, encoded(g.spec.Parameters))
}

// describeGroup converts a LocalSnapshotGroup to a backends.Group.
func (m *Master) describeGroup(o *v1alpha1.LocalSnapshotGroup) *backends.Group {
	g := &backends.Group{Handle: o.Name, Name: o.Spec.GroupName, CreatedAt: timeOf(o.Status.TakenAt),
		Fingerprint: o.Spec.Fingerprint}
	for i := range o.Spec.Members {
		g.Snapshots = append(g.Snapshots, *m.describeMember(o, i))
	}
	return g
}

// describeMember converts the i-th member of a LocalSnapshotGroup to a backends.Snapshot.
func (m *Master) describeMember(o *v1alpha1.LocalSnapshotGroup, i int) *backends.Snapshot {
	member := o.Spec.Members[i]
	return &backends.Snapshot{
		Handle: member.Snapshot, Name: o.Spec.GroupName + "/" + strconv.Itoa(i), Volume: member.Volume, Group: o.Name,
		Ready: true, SizeBytes: o.Status.Sizes[i].Bytes(), CreatedAt: timeOf(o.Status.TakenAt),
		Topology: []backends.Topology{m.place(o.Spec.Node)},
	}
}

// isGroupMade reports whether the worker has reported the time of the group and the size of every snapshot.
func isGroupMade(o *v1alpha1.LocalSnapshotGroup) bool {
	isSmall := func(s v1alpha1.Size) bool { return s.Bytes() <= 0 }
	return len(o.Status.Sizes) == len(o.Spec.Members) && !slices.ContainsFunc(o.Status.Sizes, isSmall) &&
		!timeOf(o.Status.TakenAt).IsZero()
}

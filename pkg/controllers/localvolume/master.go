package localvolume

import (
	"context"
	"errors"
	"log/slog"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/backends"
)

// finalizer keeps a LocalVolume while parts of it may be on its node.
const finalizer = v1alpha1.LocalVolumeFinalizer

// Options of the master.
type Options struct {
	Namespace      string                                // of the orders and the NodeStorages
	Driver         string                                // the name of the CSI driver
	TopologyKey    string                                // the key of a volume's only topology segment: its node
	Handle         func(name string) string              // derives a volume's handle as a node's driver does
	SnapshotHandle func(name string) string              // derives a snapshot's handle, likewise
	GroupHandle    func(name string) string              // derives a group's handle, likewise
	MemberHandle   func(group string, n int) string      // derives the handle of a group's n-th snapshot, likewise
	Access         func(poolType string) backends.Access // to the volumes of a pool of the type
	NewMutable     func() any                            // for the parameters of a VolumeAttributesClass
	Log            *slog.Logger
}

// Master creates volumes on the nodes of a cluster.
type Master struct {
	Options
	cache     client.Reader
	live      client.Reader // bypasses the cache
	write     client.Client
	volumes   orders[*v1alpha1.LocalVolume]
	snapshots orders[*v1alpha1.LocalSnapshot]
	groups    orders[*v1alpha1.LocalSnapshotGroup]
	silence   *silence
}

// Add adds the master to the controllers that m runs. The returned Master can be used once they run.
func Add(m ctrl.Manager, o Options) (*Master, error) {
	if err := Index(context.Background(), m.GetFieldIndexer()); err != nil {
		return nil, err
	}
	master := New(o, m.GetClient(), m.GetAPIReader(), m.GetClient())
	return master, errors.Join(master.volumes.add(m, "localvolume"), master.snapshots.add(m, "localsnapshot"),
		master.groups.add(m, "localsnapshotgroup"),
		NewQuestions(o.Namespace, o.Driver, m.GetClient(), m.GetAPIReader(), m.GetClient()).add(m))
}

// add adds the news and the janitor to the controllers that m runs.
func (s *orders[O]) add(m ctrl.Manager, name string) error {
	everywhere := false // Replicas that do not lead answer calls, too.
	err := ctrl.NewControllerManagedBy(m).Named(name + "-news").For(s.empty()).
		WithOptions(controller.Options{NeedLeaderElection: &everywhere}).Complete(&s.news)
	if err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(m).Named(name).For(s.empty()).Complete(newJanitor(s))
}

// New returns a Master without controllers. The cache has the shards of Index. The caller reports each change of an
// order by Changed.
func New(o Options, cache, live client.Reader, write client.Client) *Master {
	m := &Master{Options: o, cache: cache, live: live, write: write, silence: newSilence()}
	m.volumes = orders[*v1alpha1.LocalVolume]{
		Master: m, word: "volume", handleOf: o.Handle,
		empty:  func() *v1alpha1.LocalVolume { return &v1alpha1.LocalVolume{} },
		isMade: func(o *v1alpha1.LocalVolume) bool { return sizeOf(o) > 0 },
		all: func(ctx context.Context, which ...client.ListOption) ([]*v1alpha1.LocalVolume, error) {
			var list v1alpha1.LocalVolumeList
			err := m.list(ctx, m.cache, &list, which...)
			return pointers(list.Items), err
		},
	}
	m.snapshots = orders[*v1alpha1.LocalSnapshot]{
		Master: m, word: "snapshot", handleOf: o.SnapshotHandle,
		empty: func() *v1alpha1.LocalSnapshot { return &v1alpha1.LocalSnapshot{} },
		isMade: func(o *v1alpha1.LocalSnapshot) bool {
			return o.Status.Size.Bytes() > 0 && !timeOf(o.Status.TakenAt).IsZero()
		},
		all: func(ctx context.Context, which ...client.ListOption) ([]*v1alpha1.LocalSnapshot, error) {
			var list v1alpha1.LocalSnapshotList
			err := m.list(ctx, m.cache, &list, which...)
			return pointers(list.Items), err
		},
	}
	m.groups = orders[*v1alpha1.LocalSnapshotGroup]{
		Master: m, word: "group of snapshots", handleOf: o.GroupHandle, isMade: isGroupMade,
		empty: func() *v1alpha1.LocalSnapshotGroup { return &v1alpha1.LocalSnapshotGroup{} },
		all: func(ctx context.Context, which ...client.ListOption) ([]*v1alpha1.LocalSnapshotGroup, error) {
			return m.listGroups(ctx, m.cache, which...)
		},
	}
	return m
}

// list reads the objects of a type that the options select, or all. They must not be changed.
func (m *Master) list(ctx context.Context, from client.Reader, list client.ObjectList,
	which ...client.ListOption) error {
	which = append(which, client.InNamespace(m.Namespace), client.UnsafeDisableDeepCopy)
	return unreachable(from.List(ctx, list, which...))
}

func pointers[T any](items []T) []*T {
	all := make([]*T, len(items))
	for i := range items {
		all[i] = &items[i]
	}
	return all
}

// TopologyKeys returns the key of the node.
func (m *Master) TopologyKeys() []string { return []string{m.TopologyKey} }

func (m *Master) place(node string) backends.Topology { return backends.Topology{m.TopologyKey: node} }

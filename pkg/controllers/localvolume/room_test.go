package localvolume

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/local"
)

// newRooms returns a master over the cache of a manager, with nodes that have a pool and volumes. The first volume of
// each node is under way.
func newRooms(t *testing.T, nodes, volumes int) (*Master, *counted) {
	t.Helper()
	var storages v1alpha1.NodeStorageList
	var all v1alpha1.LocalVolumeList
	for n := range nodes {
		storage := v1alpha1.NodeStorage{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("node-%d", n)}}
		storage.Status.Pools = []v1alpha1.PoolStatus{{Name: "image", Type: "image", Available: v1alpha1.NewSize(10 * mib)}}
		storages.Items = append(storages.Items, storage)
		for k := range volumes {
			o := readyVolume(fmt.Sprintf("pvc-%d-%d", n, k))
			o.Spec.Node, o.Spec.RequiredBytes = storage.Name, mib
			if k == 0 {
				o.Status = v1alpha1.VolumeStatus{}
			}
			all.Items = append(all.Items, o)
		}
	}
	reader := &counted{Reader: cached(t, &all, &v1alpha1.LocalSnapshotList{}, &v1alpha1.LocalSnapshotGroupList{},
		&storages)}
	return masterOver(reader), reader
}

// TestRoomOfANode checks that a query about one node reads the objects of that node only: csi-provisioner asks for each
// class on each node.
func TestRoomOfANode(t *testing.T) {
	const nodes, volumes = 50, 4
	m, reader := newRooms(t, nodes, volumes)
	for name, c := range map[string]struct {
		where backends.Topology
		room  int64
		most  int
	}{
		"a node":         {backends.Topology{key: "node-7"}, 9 * mib, volumes},
		"an absent node": {backends.Topology{key: "node-50"}, 0, 0},
		"a zone":         {backends.Topology{"zone": "a"}, 0, nodes * (volumes + 1)},
		"everywhere":     {nil, nodes * 9 * mib, nodes * (volumes + 1)},
	} {
		reader.objects = 0
		room, err := m.Capacity(t.Context(), backends.CapacityQuery{Parameters: &local.Parameters{}, Topology: c.where})
		if err != nil || room.AvailableBytes != c.room || reader.objects > c.most {
			t.Errorf("%s: the room is %+v after reading %d objects, want %d after %d at most: %v", name, room, reader.objects,
				c.room, c.most, err)
		}
	}
}

// TestOnlyNode checks for which requirements a creation reads the objects of one node.
func TestOnlyNode(t *testing.T) {
	m := masterOver(nil)
	for name, c := range map[string]struct {
		requisite []backends.Topology
		want      string
	}{
		"anywhere":      {nil, ""},
		"a node":        {[]backends.Topology{{key: "node-7"}}, "node-7"},
		"two nodes":     {[]backends.Topology{{key: "node-7"}, {key: "node-8"}}, ""},
		"a zone":        {[]backends.Topology{{"zone": "a"}}, ""},
		"a node, there": {[]backends.Topology{{key: "node-7", "zone": "a"}}, "node-7"},
	} {
		if got := m.onlyNode(backends.TopologyRequirement{Requisite: c.requisite}); got != c.want {
			t.Errorf("%s: the only node is %q, want %q", name, got, c.want)
		}
	}
}

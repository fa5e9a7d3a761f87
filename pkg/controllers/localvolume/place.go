package localvolume

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/params"
)

// candidate is a pool of a node that may hold a volume.
type candidate struct {
	node string
	pool v1alpha1.PoolStatus
	says int64 // bytes of the largest possible volume, as reported by the node
	room int64 // bytes, less volumes under way that the report may not include
}

// poolParameter is the name of the class parameter that names the pool.
const poolParameter = "pool"

// choose picks the node of a new volume among the nodes that are up and have room. It prefers nodes that are not
// silent, then preferred places, then the most room. If node is not empty, only that node is considered. Kinds:
// Exhausted, saying what each node lacks.
func (m *Master) choose(ctx context.Context, spec backends.Spec, node string, full map[string]string) (
	candidate, error) {
	wanted, err := poolOf(spec.Parameters)
	if err != nil {
		return candidate{}, err
	}
	allows := func(place backends.Topology) bool {
		return spec.Topology.Allows(place) && (node == "" || place[m.TopologyKey] == node)
	}
	all, lacking, err := m.candidates(ctx, wanted, cmp.Or(node, m.onlyNode(spec.Topology)), allows)
	if err != nil {
		return candidate{}, err
	}
	maps.Copy(lacking, full)
	least := max(spec.Capacity.RequiredBytes, spec.LeastDeviceBytes, 1)
	if err := m.checkAccess(all, spec.Access); err != nil {
		return candidate{}, err
	}
	all = slices.DeleteFunc(all, func(c candidate) bool {
		if c.says < least && lacking[c.node] == "" {
			lacking[c.node] = fmt.Sprintf("has %d bytes", max(c.says, 0))
		}
		return lacking[c.node] != ""
	})
	for len(all) > 0 {
		best := slices.MinFunc(all, func(a, b candidate) int {
			return cmp.Or(m.compareSilence(a.node, b.node),
				cmp.Compare(m.rank(a.node, spec.Topology), m.rank(b.node, spec.Topology)),
				cmp.Compare(b.room, a.room), strings.Compare(a.node, b.node))
		})
		why, err := m.down(ctx, best.node)
		if err != nil || why == "" {
			return best, err
		}
		lacking[best.node] = why
		all = slices.DeleteFunc(all, func(c candidate) bool { return c.node == best.node })
	}
	return candidate{}, noRoom(wanted, least, lacking)
}

// checkAccess fails if there are candidates and none of their pools supports the access. The node checks the rest.
// Kinds: Invalid.
func (m *Master) checkAccess(all []candidate, access backends.Access) (err error) {
	for _, c := range all {
		if err = m.Access(c.pool.Type).Check(access); err == nil {
			return nil
		}
	}
	return err
}

// poolOf returns the pool that the class's parameters name.
func poolOf(parameters any) (string, error) {
	for _, p := range params.Describe(parameters) {
		if p.Key == poolParameter {
			return cmp.Or(params.Encode(parameters)[poolParameter], p.Default), nil
		}
	}
	return "", backends.Errorf(backends.Invalid, "the parameters are a %T, which names no pool", parameters)
}

// onlyNode returns the only node that meets the requirement, or "" if several nodes may.
func (m *Master) onlyNode(where backends.TopologyRequirement) string {
	if len(where.Requisite) != 1 {
		return ""
	}
	return where.Requisite[0][m.TopologyKey]
}

// candidates returns the pools of the name on the allowed nodes, and by node why some cannot be used. If only is not
// empty, no other node is allowed, and candidates reads no other node's objects.
func (m *Master) candidates(ctx context.Context, pool, only string, allows func(backends.Topology) bool) (
	all []candidate, lacking map[string]string, err error) {
	nodes, err := m.storages(ctx, only)
	if err != nil {
		return nil, nil, err
	}
	underWay, err := m.underWay(ctx, pool, only)
	if err != nil {
		return nil, nil, err
	}
	lacking = map[string]string{}
	for i := range nodes {
		node := &nodes[i]
		if !allows(m.place(node.Name)) || node.DeletionTimestamp != nil {
			continue
		}
		found := slices.IndexFunc(node.Status.Pools, func(p v1alpha1.PoolStatus) bool { return p.Name == pool })
		if found < 0 {
			lacking[node.Name] = "has no such pool"
			continue
		}
		c := candidate{node: node.Name, pool: node.Status.Pools[found]}
		c.says = c.pool.Available.Bytes()
		if c.pool.Largest != "" {
			c.says = min(c.says, c.pool.Largest.Bytes())
		}
		c.room = min(c.says, c.pool.Available.Bytes()-underWay[node.Name])
		if c.pool.Problem != "" {
			lacking[node.Name] = c.pool.Problem
		}
		all = append(all, c)
	}
	return all, lacking, nil
}

// storages returns the NodeStorages of all nodes, or that of one node if it is not empty. They must not be changed.
func (m *Master) storages(ctx context.Context, only string) ([]v1alpha1.NodeStorage, error) {
	if only == "" {
		var all v1alpha1.NodeStorageList
		err := m.list(ctx, m.cache, &all)
		return all.Items, err
	}
	one := make([]v1alpha1.NodeStorage, 1)
	err := m.cache.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: only}, &one[0])
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return one, unreachable(err)
}

// compareSilence sorts nodes that recently did not begin an order after all others.
func (m *Master) compareSilence(a, b string) int {
	switch silentA, silentB := m.silence.isSilent(a), m.silence.isSilent(b); {
	case silentA == silentB:
		return 0
	case silentA:
		return 1
	default:
		return -1
	}
}

// rank returns the index of the first preferred place that the node is in, or the number of preferred places.
func (m *Master) rank(node string, where backends.TopologyRequirement) int {
	n := slices.IndexFunc(where.Preferred, m.place(node).Agrees)
	if n < 0 {
		return len(where.Preferred)
	}
	return n
}

// underWay returns, by node, the bytes of volumes under way in the pool that the node's report may not include yet.
// Some of them may never be created, so the result only affects the order of nodes. The node decides: if it refuses,
// another is asked. If only is not empty, the result has no other node.
func (m *Master) underWay(ctx context.Context, pool, only string) (map[string]int64, error) {
	var which []client.ListOption
	if only != "" {
		which = append(which, client.MatchingFields{nodeIndex: only})
	}
	volumes, err := m.volumes.all(ctx, which...)
	if err != nil {
		return nil, err
	}
	bytes := map[string]int64{}
	for _, o := range volumes {
		if o.Spec.Pool == pool && !hasEnded(o) && !o.Spec.Delete {
			bytes[o.Spec.Node] += max(0, o.Spec.RequiredBytes-sizeOf(o))
		}
	}
	return bytes, nil
}

// noRoom returns an error that says what each node lacks. Of many nodes it lists only the first.
func noRoom(pool string, least int64, lacking map[string]string) error {
	if len(lacking) == 0 {
		return backends.Errorf(backends.Exhausted, "no node that the topology allows reports pools: "+
			"look at the NodeStorages, and whether the worker of the node runs")
	}
	const most = 4
	var all []string
	for _, node := range slices.Sorted(maps.Keys(lacking)) {
		if len(all) == most {
			all = append(all, fmt.Sprintf("and %d more", len(lacking)-most))
			break
		}
		all = append(all, fmt.Sprintf("node %s: %s", node, lacking[node]))
	}
	return backends.Errorf(backends.Exhausted, "no node that the topology allows has %d bytes in a pool %q: %s", least,
		pool, strings.Join(all, "; "))
}

// Capacity returns the room of the pools that match the query. A node whose worker is silent offers none. A query
// about a node reads that node's objects only: csi-provisioner asks for each class on each node.
func (m *Master) Capacity(ctx context.Context, query backends.CapacityQuery) (backends.Capacity, error) {
	var sum backends.Capacity
	pool, err := poolOf(query.Parameters)
	if err != nil {
		return sum, err
	}
	within := func(place backends.Topology) bool { return place.Within(query.Topology) }
	all, lacking, err := m.candidates(ctx, pool, query.Topology[m.TopologyKey], within)
	for _, c := range all {
		if lacking[c.node] != "" || c.room <= 0 || m.silence.isSilent(c.node) ||
			m.Access(c.pool.Type).Check(query.Access) != nil {
			continue
		}
		sum.AvailableBytes += min(c.room, math.MaxInt64-sum.AvailableBytes)
		sum.LargestBytes = max(sum.LargestBytes, c.room)
	}
	return sum, err
}

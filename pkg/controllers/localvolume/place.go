package localvolume

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/stowage-csi/stowage/pkg/apis/v1alpha1"
	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/params"
)

// candidate is a pool of a node that may take a volume.
type candidate struct {
	node string
	pool v1alpha1.PoolStatus
	says int64 // bytes of the largest volume, by the node's report
	room int64 // bytes, without what is under way and may not be in the report yet
}

// poolParameter is the name of the class parameter that names the pool.
const poolParameter = "pool"

// choose picks the node of a new volume: of those that are up, the best place that has room, and of equal ones the one
// with the most. With a node it is that one. Kinds: Exhausted, saying what each node lacks.
func (m *Master) choose(ctx context.Context, spec backends.Spec, node string, full map[string]string) (
	candidate, error) {
	wanted, err := poolOf(spec.Parameters)
	if err != nil {
		return candidate{}, err
	}
	allows := func(place backends.Topology) bool {
		return spec.Topology.Allows(place) && (node == "" || place[m.TopologyKey] == node)
	}
	all, lacking, err := m.candidates(ctx, wanted, allows)
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

// checkAccess refuses what no pool of the name can be used for, and leaves the rest to the node. Kinds: Invalid.
func (m *Master) checkAccess(all []candidate, access backends.Access) (err error) {
	for _, c := range all {
		if err = m.Access(c.pool.Type).Check(access); err == nil {
			return nil
		}
	}
	return err
}

// poolOf is the pool that the class's parameters name.
func poolOf(parameters any) (string, error) {
	for _, p := range params.Describe(parameters) {
		if p.Key == poolParameter {
			return cmp.Or(params.Encode(parameters)[poolParameter], p.Default), nil
		}
	}
	return "", backends.Errorf(backends.Invalid, "the parameters are a %T, which names no pool", parameters)
}

// candidates are the pools of the name on the nodes that are allowed, and why some of those cannot be used.
func (m *Master) candidates(ctx context.Context, pool string, allows func(backends.Topology) bool) (
	all []candidate, lacking map[string]string, err error) {
	var nodes v1alpha1.NodeStorageList
	if err := m.list(ctx, m.cache, &nodes); err != nil {
		return nil, nil, err
	}
	underWay, err := m.underWay(ctx, pool)
	if err != nil {
		return nil, nil, err
	}
	lacking = map[string]string{}
	for i := range nodes.Items {
		node := &nodes.Items[i]
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

// compareSilence has nodes that let others wait in vain of late come after those that did not.
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

// rank is the number of the first preferred place that the node is in.
func (m *Master) rank(node string, where backends.TopologyRequirement) int {
	n := slices.IndexFunc(where.Preferred, m.place(node).Agrees)
	if n < 0 {
		return len(where.Preferred)
	}
	return n
}

// underWay is, by node, what is to be made in the pool and may not be in the node's report yet. It decides the order of
// nodes only, since some of it may never come. A node has the last word: it refuses, and another is asked.
func (m *Master) underWay(ctx context.Context, pool string) (map[string]int64, error) {
	volumes, err := m.volumes.all(ctx)
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

// noRoom says what each node lacks, of many nodes the first.
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

// Capacity is the room of the pools that the query allows. A node whose worker is silent has none to offer.
func (m *Master) Capacity(ctx context.Context, query backends.CapacityQuery) (backends.Capacity, error) {
	var sum backends.Capacity
	pool, err := poolOf(query.Parameters)
	if err != nil {
		return sum, err
	}
	within := func(place backends.Topology) bool { return place.Within(query.Topology) }
	all, lacking, err := m.candidates(ctx, pool, within)
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

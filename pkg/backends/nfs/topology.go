package nfs

import (
	"context"
	"maps"
	"slices"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// topologies are from where shares of the configuration can be reached, by their names. All other shares can be from
// everywhere.
type topologies map[string]backends.Topology

func (c *Config) topologies() topologies {
	all := topologies{}
	for _, s := range c.Shares {
		if len(s.Topology) > 0 {
			all[s.Name] = s.Topology
		}
	}
	return all
}

// keys are those of all segments.
func (t topologies) keys() []string {
	all := map[string]bool{}
	for _, place := range t {
		for key := range place {
			all[key] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// of is from where that which a record speaks of can be reached.
func (t topologies) of(r *record) []backends.Topology {
	if place, ok := t[shareName(r.Handle)]; ok {
		return []backends.Topology{maps.Clone(place)}
	}
	return nil
}

// check reports whether a share meets a requirement. Kinds: Exhausted.
func (t topologies) check(share string, required backends.TopologyRequirement) error {
	if required.Allows(t[share]) {
		return nil
	}
	return backends.Errorf(backends.Exhausted,
		"the share %s can be reached from %v only, and not from any of %v: let the class have a share for that place, or "+
			"allowedTopologies",
		share, t[share], required.Requisite)
}

// reach reports whether a share can be reached from a place, of which nothing may be said that is not known.
func (t topologies) reach(share string, from backends.Topology) bool {
	keys := t.keys()
	for key := range from {
		if !slices.Contains(keys, key) {
			return false
		}
	}
	return t[share].Agrees(from)
}

// placedController and placedNode are the backend where a share cannot be reached from everywhere.
type (
	placedController struct{ *controllerSide }
	placedNode       struct {
		*nodeSide
		place backends.Topology
	}
)

// TopologyKeys are the keys of the configuration's segments.
func (p *placedController) TopologyKeys() []string { return p.places.keys() }

// Topology is where this node is.
func (p *placedNode) Topology(context.Context) (backends.Topology, error) {
	return maps.Clone(p.place), nil
}

// here is where this node is, with a segment for each key. Kinds: Invalid when that was not said.
func (t topologies) here(options backends.Options) (backends.Topology, error) {
	place := backends.Topology{}
	for _, key := range t.keys() {
		value, said := options.Topology[key]
		if !said && options.NodeID != "" {
			return nil, backends.Errorf(backends.Invalid,
				"the configuration has shares with the topology key %s: say where this node is, as in --topology %s=a", key, key)
		}
		place[key] = value
	}
	return place, nil
}

// instance is the backend as its roles see it.
func (e *engine) instance(here backends.Topology) *backends.Instance {
	controller, node := &controllerSide{e}, &nodeSide{e}
	if len(here) == 0 {
		return &backends.Instance{Controller: controller, Node: node, Close: e.close}
	}
	return &backends.Instance{Controller: &placedController{controller}, Node: &placedNode{node, here}, Close: e.close}
}

package nfs

import (
	"context"
	"maps"
	"slices"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// topologies say where shares of the configuration can be reached from, by their names. All other shares can be reached
// from everywhere.
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

// keys returns the keys of all segments.
func (t topologies) keys() []string {
	all := map[string]bool{}
	for _, place := range t {
		for key := range place {
			all[key] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// of returns where the record's item can be reached from.
func (t topologies) of(r *record) []backends.Topology {
	if place, ok := t[shareName(r.Handle)]; ok {
		return []backends.Topology{maps.Clone(place)}
	}
	return nil
}

// check fails unless a share meets a requirement. Kinds: Exhausted.
func (t topologies) check(share string, required backends.TopologyRequirement) error {
	if required.Allows(t[share]) {
		return nil
	}
	return backends.Errorf(backends.Exhausted,
		"the share %s can be reached from %v only, and not from any of %v: let the class have a share for that place, or "+
			"allowedTopologies",
		share, t[share], required.Requisite)
}

// reach reports whether a share can be reached from a place. A place with an unknown key is never reached.
func (t topologies) reach(share string, from backends.Topology) bool {
	keys := t.keys()
	for key := range from {
		if !slices.Contains(keys, key) {
			return false
		}
	}
	return t[share].Agrees(from)
}

// placedController and placedNode are the backend for shares that cannot be reached from everywhere.
type (
	placedController struct{ *controllerSide }
	placedNode       struct {
		*nodeSide
		place backends.Topology
	}
)

// TopologyKeys returns the keys of the configuration's segments.
func (p *placedController) TopologyKeys() []string { return p.places.keys() }

// Topology returns the place of this node.
func (p *placedNode) Topology(context.Context) (backends.Topology, error) {
	return maps.Clone(p.place), nil
}

// here returns the place of this node, with a segment for each key. Kinds: Invalid when one is not set.
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

// instance returns the backend's instance with its two roles.
func (e *engine) instance(here backends.Topology) *backends.Instance {
	controller, node := &controllerSide{e}, &nodeSide{e}
	if len(here) == 0 {
		return &backends.Instance{Controller: controller, Node: node, Close: e.close}
	}
	return &backends.Instance{Controller: &placedController{controller}, Node: &placedNode{node, here}, Close: e.close}
}

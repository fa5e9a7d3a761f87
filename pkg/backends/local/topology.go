package local

import (
	"context"
	"maps"
	"slices"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// topologyKey returns the key of the only segment: the node.
func topologyKey(driver string) string { return driver + "/node" }

// TopologyKeys returns the keys of Topology.
func (e *engine) TopologyKeys() []string { return slices.Collect(maps.Keys(e.place)) }

// Topology returns this node, because volumes cannot be reached from another.
func (e *engine) Topology(context.Context) (backends.Topology, error) {
	return maps.Clone(e.place), nil
}

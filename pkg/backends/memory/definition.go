package memory

import (
	"context"
	"slices"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// Config is the backend's configuration.
type Config struct {
	// CapacityBytes is how many bytes all volumes and snapshots may take together.
	CapacityBytes int64 `json:"capacityBytes"`
	// MaxVolumesPerNode is how many volumes can be attached to a node; 0 for no limit.
	MaxVolumesPerNode int64 `json:"maxVolumesPerNode"`
	// Nodes are the IDs of the nodes, besides this one, that volumes can be attached to.
	Nodes []string `json:"nodes"`
	// Zone is the zone of this backend and all its nodes.
	Zone string `json:"zone"`
}

// Definition describes the backend.
func Definition() backends.Definition {
	return backends.Definition{
		Name:          "memory",
		Summary:       "volumes that are gone with the process: the reference, for tests",
		Inseparable:   true,
		NewParameters: func() any { return new(Parameters) },
		NewMutable:    func() any { return new(Mutable) },
		NewConfig:     func() any { return &Config{CapacityBytes: 1 << 40, Zone: "memory"} },
		Open:          open,
	}
}

func open(_ context.Context, options backends.Options) (*backends.Instance, error) {
	config, ok := options.Config.(*Config)
	if !ok {
		return nil, backends.Errorf(backends.Invalid, "the configuration is a %T: give what NewConfig returns",
			options.Config)
	}
	if err := config.check(); err != nil {
		return nil, err
	}
	zone := backends.Topology{options.Driver + "/zone": config.Zone}
	for key, value := range options.Topology { // Check before the old contents are removed.
		if zone[key] != value {
			return nil, backends.Errorf(backends.Invalid, "this node is said to be at %s=%s: by the configuration it is at %v",
				key, value, zone)
		}
	}
	files, err := openFiles(options.DataDir, options.Log)
	if err != nil {
		return nil, err
	}
	b := &backend{
		zone:      zone,
		nodes:     append(slices.Clone(config.Nodes), options.NodeID),
		node:      options.NodeID,
		config:    *config,
		files:     files,
		volumes:   newTable[*volume]("volume"),
		snapshots: newTable[*snapshot]("snapshot"),
		groups:    newTable[*group]("group"),
	}
	return &backends.Instance{Controller: b, Node: b, Close: files.close}, nil
}

func (c *Config) check() error {
	switch {
	case c.CapacityBytes < step:
		return backends.Errorf(backends.Invalid, "capacityBytes is %d: it must be at least %d", c.CapacityBytes, int64(step))
	case c.MaxVolumesPerNode < 0:
		return backends.Errorf(backends.Invalid, "maxVolumesPerNode is %d: it must be at least 0", c.MaxVolumesPerNode)
	case c.Zone == "":
		return backends.Errorf(backends.Invalid, "zone is empty: it must be a name")
	}
	return nil
}

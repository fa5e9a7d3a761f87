package nfs

import (
	"fmt"
	"regexp"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/export"
)

// maxConnections is the kernel's limit of connections to one server (NFS_MAX_CONNECTIONS).
const maxConnections = 16

// Config is the backend's configuration, as --config holds it in YAML. Controller and nodes need the same.
type Config struct {
	// Shares are shares with a name, for the class parameter shareName and for addresses that are too long for a handle.
	// No static volume may be their root, or lie above it. They are enumerated, and their trash is removed, from the
	// start; for other shares both begin with their first use.
	Shares []ShareConfig `json:"shares,omitempty"`
	// OnlyShares refuses every other share, whether a class, a handle or a static volume names it. A static volume may
	// also name a directory of one of these shares as its share.
	OnlyShares bool `json:"onlyShares,omitempty"`
	// Patience is how long an attempt may show no sign of life before it counts as dead; 0 is five minutes. It cannot be
	// set in a file: it is for tests, which cannot wait five minutes.
	Patience time.Duration `json:"-"`
}

// ShareConfig describes a share.
type ShareConfig struct {
	// Name is the value of the class parameter shareName: at most 63 of a-z, 0-9, "-" and ".", with a letter or digit at
	// both ends. Handles contain it. The share may move to another server, but the name must keep leading to the same
	// share.
	Name string `json:"name"`
	// Server and Share are as the class parameters.
	Server string `json:"server"`
	Share  string `json:"share"`
	// NFSVersion is as the class parameter nfsvers.
	NFSVersion string `json:"nfsvers,omitempty"`
	// Nconnect is the number of connections that the driver's own mounts request, 1 to 16; the default is 1, and on nodes
	// the value of the volume's class. A controller shares the connections of its node with the pods there, and may mount
	// first: use the value of the classes.
	Nconnect int `json:"nconnect,omitempty"`
	// Topology says where the share can be reached from, such as topology.kubernetes.io/zone: a; by default everywhere.
	Topology backends.Topology `json:"topology,omitempty"`
}

// resolve checks the configuration. Kinds: Invalid.
func (c *Config) resolve() (map[string]export.Address, error) {
	form := regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$`)
	named := map[string]export.Address{}
	if c.OnlyShares && len(c.Shares) == 0 {
		return nil, backends.Errorf(backends.Invalid,
			"onlyShares is set and the configuration has no shares: name those that may be used")
	}
	for _, s := range c.Shares {
		if !form.MatchString(s.Name) {
			return nil, backends.Errorf(backends.Invalid,
				"a share's name is %q: use at most 63 of a-z, 0-9, \"-\" and \".\", with a letter or digit at both ends", s.Name)
		}
		if _, taken := named[s.Name]; taken {
			return nil, backends.Errorf(backends.Invalid, "two shares are named %q: give each a name of its own", s.Name)
		}
		address, err := export.Parse(s.Server, s.Share, s.NFSVersion)
		if err != nil {
			return nil, backends.Errorf(backends.Invalid, "share %q of the configuration: %w", s.Name, err)
		}
		if err := s.Topology.Check(); err != nil {
			return nil, backends.Errorf(backends.Invalid, "share %q of the configuration: %w", s.Name, err)
		}
		if s.Nconnect < 0 || s.Nconnect > maxConnections {
			return nil, backends.Errorf(backends.Invalid, "share %q of the configuration: nconnect is %d: use 1 to %d", s.Name,
				s.Nconnect, maxConnections)
		}
		if s.Nconnect > 0 {
			address.Connection = fmt.Sprintf("nconnect=%d", s.Nconnect)
		}
		named[s.Name] = address
	}
	return named, nil
}

package local

import (
	"cmp"
	"errors"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/params"
	"github.com/stowage-csi/stowage/pkg/safepath"
)

// Config is the backend's configuration, as --config holds it in YAML.
type Config struct {
	// Pools are those of this node. Without any there is one, "image", of the type that it is named after.
	Pools []PoolConfig `json:"pools,omitempty"`
	// Retired names pools that were served before and are given up. Nothing in them is touched, and all of it is
	// forgotten: a volume in one of them is NotFound, and so can be deleted. A pool that is neither here nor among Pools
	// keeps what is in it.
	Retired []string `json:"retired,omitempty"`
	// FreezeLimit bounds how long a mounted filesystem is kept frozen for a snapshot by copy, in the form
	// of time.ParseDuration; default "30s".
	FreezeLimit string `json:"freezeLimit,omitempty"`
	// Limits is not for users.
	Limits Limits `json:"-"`
}

// PoolConfig describes a pool.
type PoolConfig struct {
	// Name is what the class parameter "pool" says: at most 63 of a-z, 0-9, "-" and ".", with a
	// letter or digit at both ends.
	Name string `json:"name"`
	// Type is "directory" or "image".
	Type string `json:"type"`
	// Path is an absolute path, made when it is missing; default "pools/<name>" in the data directory.
	Path string `json:"path,omitempty"`
	// Capacity bounds the sum of the sizes of all volumes and snapshots, such as "100Gi", beside the room that the
	// filesystem has; by default nothing else does.
	Capacity string `json:"capacity,omitempty"`
	// Overcommit is how many bytes may be promised for each that the filesystem has free or that volumes hold already;
	// default 1. What is promised beyond that is not there when it is written.
	Overcommit *float64 `json:"overcommit,omitempty"`
	// Reserve is how much of the filesystem is kept free, for what else is on it, such as "10Gi" or "20%"; by default
	// nothing. A directory volume may be filled beyond its size all the same.
	Reserve string `json:"reserve,omitempty"`
	// SharesDisk says of a pool of type directory that it is known to be on the filesystem of the data directory, which
	// its volumes may fill: without it the log warns of that.
	SharesDisk bool `json:"sharesDisk,omitempty"`
}

// defaultFreezeLimit is Config.FreezeLimit where nothing is configured.
const defaultFreezeLimit = 30 * time.Second

// mostOvercommit is more than anybody means.
const mostOvercommit = 1_000_000

// settings are a Config that has been checked and completed.
type settings struct {
	pools       []poolSettings
	retired     []string
	freezeLimit time.Duration
	limits      Limits
}

// poolSettings are a PoolConfig that has been checked and completed.
type poolSettings struct {
	name     string
	poolType poolType
	path     string
	capacity int64 // 0 for none
	// overcommit is how many bytes may be promised for each that is there.
	overcommit float64
	reserve    reserve
	sharesDisk bool
}

// resolve checks the configuration and completes it. Kinds: Invalid.
func (c *Config) resolve(dataDir string) (settings, error) {
	var s settings
	limit, err := time.ParseDuration(cmp.Or(c.FreezeLimit, defaultFreezeLimit.String()))
	if err != nil || limit <= 0 {
		return s, backends.Errorf(backends.Invalid, "freezeLimit is %q: use a time such as 30s", c.FreezeLimit)
	}
	s.freezeLimit, s.limits = limit, c.Limits.orDefault()
	pools := c.Pools
	if len(pools) == 0 {
		// None of directories: its volumes could fill the disk that the data directory is on.
		pools = []PoolConfig{{Name: "image", Type: string(image)}}
	}
	for _, p := range pools {
		resolved, err := p.resolve(dataDir)
		if err != nil {
			return s, err
		}
		s.pools = append(s.pools, resolved)
	}
	s.retired = c.Retired
	return s, errors.Join(checkTogether(s.pools, dataDir), checkRetired(s.retired, s.pools))
}

func (p PoolConfig) resolve(dataDir string) (poolSettings, error) {
	s := poolSettings{name: p.Name, poolType: poolType(p.Type), path: p.Path, sharesDisk: p.SharesDisk}
	if !isPoolName(p.Name) {
		return s, backends.Errorf(backends.Invalid,
			"a pool's name is %q: use at most 63 of a-z, 0-9, \"-\" and \".\", with a letter or digit at both ends", p.Name)
	}
	if !s.poolType.isKnown() {
		return s, backends.Errorf(backends.Invalid, "the type of pool %q is %q: use directory or image", p.Name, p.Type)
	}
	if s.path == "" {
		s.path = filepath.Join(dataDir, poolsFolder, p.Name)
	}
	if err := checkPath(s.path); err != nil {
		return s, backends.Errorf(backends.Invalid, "the path of pool %q is wrong: %w", p.Name, err)
	}
	if s.overcommit = 1; p.Overcommit != nil {
		s.overcommit = *p.Overcommit
	}
	if s.overcommit <= 0 || s.overcommit > mostOvercommit {
		return s, backends.Errorf(backends.Invalid,
			"the overcommit of pool %q is %v: use a number above 0 and up to %d, such as 1.0",
			p.Name, s.overcommit, mostOvercommit)
	}
	var err error
	if s.capacity, err = p.size("capacity", p.Capacity); err != nil {
		return s, err
	}
	s.reserve, err = p.parseReserve()
	return s, err
}

// size reads a size of the pool's; 0 for none.
func (p PoolConfig) size(what, text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	size, err := params.ParseSize(text)
	if err != nil || size <= 0 {
		return 0, backends.Errorf(backends.Invalid, "the %s of pool %q is %q: use a size such as 100Gi", what, p.Name, text)
	}
	return int64(size), nil
}

func isPoolName(name string) bool {
	return len(name) <= 63 && regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`).MatchString(name)
}

// checkPath refuses what is not the one spelling of an absolute path.
func checkPath(path string) error {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path || path == "/" || strings.ContainsRune(path, 0) {
		return backends.Errorf(backends.Invalid,
			"%q is not a clean path: use an absolute path below /, without \"..\", \"//\" or a \"/\" at its end", path)
	}
	return nil
}

// checkTogether refuses pools that would get into each other's way, or into the backend's own.
func checkTogether(pools []poolSettings, dataDir string) error {
	for i, p := range pools {
		if dup := slices.IndexFunc(pools[:i], func(o poolSettings) bool { return o.name == p.name }); dup >= 0 {
			return backends.Errorf(backends.Invalid, "two pools are named %q: give each a name of its own", p.name)
		}
		for _, other := range pools[:i] {
			if safepath.Within(other.path, p.path) || safepath.Within(p.path, other.path) {
				return nested(other.name, p.name, other.path, p.path)
			}
		}
		if err := checkOutside(p.name, p.path, dataDir); err != nil {
			return err
		}
	}
	return nil
}

func nested(one, other, onePath, otherPath string) error {
	return backends.Errorf(backends.Invalid, "pools %q and %q are one in the other (%s and %s): keep them apart",
		one, other, onePath, otherPath)
}

// checkOutside refuses a path of a pool that the backend keeps for itself.
func checkOutside(name, path, dataDir string) error {
	home := filepath.Join(dataDir, poolsFolder)
	if safepath.Within(path, dataDir) || safepath.Within(path, home) || safepath.Within(dataDir, path) &&
		!safepath.Within(home, path) {
		return backends.Errorf(backends.Invalid,
			"the path of pool %q is %s, which the backend keeps for itself: use one below %s or outside the data directory",
			name, path, home)
	}
	return nil
}

// checkRetired refuses names of retired pools that cannot be, or that are served as well.
func checkRetired(retired []string, pools []poolSettings) error {
	for _, name := range retired {
		if !isPoolName(name) {
			return backends.Errorf(backends.Invalid,
				"retired names %q, which cannot be a pool's name: name a pool that was served before", name)
		}
		if slices.ContainsFunc(pools, func(p poolSettings) bool { return p.name == name }) {
			return backends.Errorf(backends.Invalid, "pool %q is retired and among the pools: take it out of one of the two",
				name)
		}
	}
	return nil
}

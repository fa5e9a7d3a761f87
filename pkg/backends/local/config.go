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
	// Pools are the pools of this node. The default is one pool "image" of type image.
	Pools []PoolConfig `json:"pools,omitempty"`
	// Retired names pools that were served before and are given up. Their contents are not touched, but forgotten: a
	// volume in one of them is NotFound, and so can be deleted. A pool that is neither in Retired nor in Pools keeps its
	// contents.
	Retired []string `json:"retired,omitempty"`
	// FreezeLimit bounds how long a mounted filesystem is kept frozen for a snapshot by copy, in the format of
	// time.ParseDuration; default "30s".
	FreezeLimit string `json:"freezeLimit,omitempty"`
	// Limits is not for users.
	Limits Limits `json:"-"`
}

// PoolConfig describes a pool.
type PoolConfig struct {
	// Name is the value of the class parameter "pool": at most 63 of a-z, 0-9, "-" and ".", with a letter or digit at both
	// ends.
	Name string `json:"name"`
	// Type is "directory" or "image".
	Type string `json:"type"`
	// Path is an absolute path, created if it is missing; default "pools/<name>" in the data directory.
	Path string `json:"path,omitempty"`
	// Capacity bounds the sum of the sizes of all volumes and snapshots, such as "100Gi". By default only the room on the
	// filesystem bounds it.
	Capacity string `json:"capacity,omitempty"`
	// Overcommit is how many bytes may be promised for each byte that is free on the filesystem or already held by
	// volumes; default 1. With a larger value, writes can run out of space.
	Overcommit *float64 `json:"overcommit,omitempty"`
	// Reserve is how much of the filesystem is kept free for other uses, such as "10Gi" or "20%"; default nothing. A
	// directory volume may still be filled beyond its size.
	Reserve string `json:"reserve,omitempty"`
	// SharesDisk confirms that a pool of type directory is on the filesystem of the data directory, which its volumes may
	// fill. Without it, the log warns about that.
	SharesDisk bool `json:"sharesDisk,omitempty"`
}

// defaultFreezeLimit is the default of Config.FreezeLimit.
const defaultFreezeLimit = 30 * time.Second

// mostOvercommit is larger than any sensible overcommit.
const mostOvercommit = 1_000_000

// settings is a checked Config with its defaults filled in.
type settings struct {
	pools       []poolSettings
	retired     []string
	freezeLimit time.Duration
	limits      Limits
}

// poolSettings is a checked PoolConfig with its defaults filled in.
type poolSettings struct {
	name     string
	poolType poolType
	path     string
	capacity int64 // 0 for none
	// overcommit is how many bytes may be promised for each byte that exists.
	overcommit float64
	reserve    reserve
	sharesDisk bool
}

// resolve checks the configuration and fills in defaults. Kinds: Invalid.
func (c *Config) resolve(dataDir string) (settings, error) {
	var s settings
	limit, err := time.ParseDuration(cmp.Or(c.FreezeLimit, defaultFreezeLimit.String()))
	if err != nil || limit <= 0 {
		return s, backends.Errorf(backends.Invalid, "freezeLimit is %q: use a time such as 30s", c.FreezeLimit)
	}
	s.freezeLimit, s.limits = limit, c.Limits.orDefault()
	pools := c.Pools
	if len(pools) == 0 {
		// The default is no directory pool: its volumes could fill the disk of the data directory.
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

// size parses a size of the pool; 0 for none.
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

// checkPath refuses paths that are not absolute and clean.
func checkPath(path string) error {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path || path == "/" || strings.ContainsRune(path, 0) {
		return backends.Errorf(backends.Invalid,
			"%q is not a clean path: use an absolute path below /, without \"..\", \"//\" or a \"/\" at its end", path)
	}
	return nil
}

// checkTogether refuses pools that share a name, or overlap with each other or with the backend's own directories.
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

// checkOutside refuses a pool path that the backend keeps for itself.
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

// checkRetired refuses names of retired pools that are invalid or also among the pools.
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

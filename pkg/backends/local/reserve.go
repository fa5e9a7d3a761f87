package local

import (
	"strconv"
	"strings"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// reserve is the space of its filesystem that a pool keeps free: a number of bytes, or a percentage of the size.
type reserve struct {
	bytes   int64
	percent int64
}

// of is how many bytes are kept free on a filesystem of this size.
func (r reserve) of(filesystem int64) int64 { return r.bytes + filesystem/100*r.percent }

// parseReserve parses the reserve of the pool's configuration. Kinds: Invalid.
func (p PoolConfig) parseReserve() (r reserve, err error) {
	number, isPart := strings.CutSuffix(p.Reserve, "%")
	if !isPart {
		r.bytes, err = p.size("reserve", p.Reserve)
		return r, err
	}
	r.percent, err = strconv.ParseInt(number, 10, 64)
	if err != nil || r.percent < 1 || r.percent > 99 || strconv.FormatInt(r.percent, 10) != number {
		return r, backends.Errorf(backends.Invalid,
			"the reserve of pool %q is %q: use a size such as 10Gi, or a part of the filesystem from 1%% to 99%%", p.Name,
			p.Reserve)
	}
	return r, nil
}

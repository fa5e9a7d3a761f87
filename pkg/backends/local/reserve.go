package local

import (
	"strconv"
	"strings"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// reserve is what a pool keeps free of its filesystem: so many bytes, or so much of whatever size that has.
type reserve struct {
	bytes   int64
	percent int64
}

// of is how many bytes of a filesystem are kept free.
func (r reserve) of(filesystem int64) int64 { return r.bytes + filesystem/100*r.percent }

// parseReserve reads what the pool's configuration says. Kinds: Invalid.
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

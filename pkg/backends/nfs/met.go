package nfs

import (
	"cmp"
	"encoding/hex"

	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// meet notes a share on which this process has made something, or found it by its name or its handle. Should
// another be in its place later, this one is still what was there.
func (k *known) meet(h *share.Home) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, before := k.met[h.Address().String()]; !before {
		k.met[h.Address().String()] = h.Identity()
	}
}

// confirms reports whether the share at a place is the right one, as what this process has made or found there shows,
// unless another is noted. A note alone shows nothing, nor does a list: they know what there was at a look, which may
// have been an empty directory in the place of the share, with what a refused creation has left there.
func (k *known) confirms(p place, id homeID) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	met, ok := k.met[p.String()]
	noted := cmp.Or(k.homes[p.key()], k.homes[p.String()])
	return ok && met == id && (noted == "" || noted == hex.EncodeToString(id[:]))
}

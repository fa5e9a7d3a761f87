package nfs

import (
	"cmp"
	"encoding/hex"

	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// meet notes a share on which this process has created an item, or has found one by its name or its handle. If another
// share is in its place later, the noted identity stays.
func (k *known) meet(h *share.Home) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, before := k.met[h.Address().String()]; !before {
		k.met[h.Address().String()] = h.Identity()
	}
}

// confirms reports whether the share at a place is the right one: an item that this process has created or found there
// shows that, unless another identity is noted. A note alone shows nothing, nor does a list. They say what a look
// found, which may have been an empty directory in place of the share, with the remains of a refused creation.
func (k *known) confirms(p place, id homeID) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	met, ok := k.met[p.String()]
	noted := cmp.Or(k.homes[p.key()], k.homes[p.String()])
	return ok && met == id && (noted == "" || noted == hex.EncodeToString(id[:]))
}

package nfs

import (
	"errors"
	"fmt"
	"sync"

	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// unlaid holds the reasons for which records could not be laid, by the IDs of the items that they may be of.
type unlaid map[string]error

// add notes why a record could not be laid.
func (u unlaid) add(id string, why error) { u[id] = errors.Join(u[id], why) }

func (u unlaid) ids() map[string]bool {
	ids := map[string]bool{}
	for id := range u {
		ids[id] = true
	}
	return ids
}

// failure joins the reasons. It returns nil if there is none.
func (u unlaid) failure() (err error) {
	for _, why := range u {
		err = errors.Join(err, why)
	}
	return err
}

// laid holds the shares whose whole trash a janitor of this process has checked. The janitor has put all records in
// their places that an earlier version of the driver had moved there, except those that could not be laid.
type laid struct {
	mu     sync.Mutex
	shares map[string]map[string]bool // with the IDs of the records that could not be laid
}

// share returns a name for a Home. The address is not sufficient: another share may come to it.
func (l *laid) share(h *share.Home) string { return fmt.Sprintf("%s %x", h.Address(), h.Identity()) }

// on reports whether the trash of a share was checked.
func (l *laid) on(h *share.Home) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, looked := l.shares[l.share(h)]
	return looked
}

// of reports whether all records of the ID in the trash of a share were laid.
func (l *laid) of(h *share.Home, id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	but, looked := l.shares[l.share(h)]
	return looked && !but[id]
}

// note notes that all records in the trash of a share were laid, except those of these IDs.
func (l *laid) note(h *share.Home, but map[string]bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shares == nil {
		l.shares = map[string]map[string]bool{}
	}
	l.shares[l.share(h)] = but
}

// forget makes all callers look at the trash of a share again.
func (l *laid) forget(h *share.Home) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.shares, l.share(h))
}

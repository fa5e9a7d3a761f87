package nfs

import (
	"errors"
	"fmt"
	"sync"

	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// unlaid is why records could not be laid, by the IDs of the things that they may be of.
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

// failure is nil where nothing is left.
func (u unlaid) failure() (err error) {
	for _, why := range u {
		err = errors.Join(err, why)
	}
	return err
}

// laid are the shares of which a janitor of this process has looked at the whole trash, and has put all in its place
// that an earlier version of the driver had moved there, but for what could not be laid.
type laid struct {
	mu     sync.Mutex
	shares map[string]map[string]bool // with the IDs of what could not
}

// share names a Home: one of another identity may come to its address.
func (l *laid) share(h *share.Home) string { return fmt.Sprintf("%s %x", h.Address(), h.Identity()) }

// on reports whether the trash of a share was looked at.
func (l *laid) on(h *share.Home) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, looked := l.shares[l.share(h)]
	return looked
}

// of reports whether all was laid in the trash of a share that is of things with the ID.
func (l *laid) of(h *share.Home, id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	but, looked := l.shares[l.share(h)]
	return looked && !but[id]
}

// note notes that all was laid in the trash of a share, but what is of these IDs.
func (l *laid) note(h *share.Home, but map[string]bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shares == nil {
		l.shares = map[string]map[string]bool{}
	}
	l.shares[l.share(h)] = but
}

// forget has all look at the trash of a share again.
func (l *laid) forget(h *share.Home) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.shares, l.share(h))
}

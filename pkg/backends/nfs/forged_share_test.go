package nfs

import (
	"slices"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// A user who can write a handle can name any server, with a share that matches the handle. Lists do not come to depend
// on it.
func TestForgedHandleAddsNoShare(t *testing.T) {
	w := newWorld(t)
	v := w.make(specOf("hostile"))
	w.data = t.TempDir() // A controller that does not know the share.
	w.reopen()
	_, err := w.Get(t.Context(), v.Handle)
	w.must(err)
	if places := w.known.sorted(); len(places) != 0 {
		t.Errorf("the handle has added %v to what is enumerated", places)
	}
	_, _, err = w.List(t.Context(), backends.Page{})
	w.fails("a list without a share", err, backends.Unavailable, "--config")
	w.make(specOf("mine"))
	if have := w.listed(t.Context(), 0); !slices.Equal(have, []string{"hostile", "mine"}) {
		t.Errorf("after a volume was made it lists %v, want both", have)
	}
}

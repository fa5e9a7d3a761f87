package nfs

import (
	"slices"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// Whoever can write a handle can name a server of his own, on which all is as the handle says. Lists do not come to
// depend on it.
func TestForgedHandleAddsNoShare(t *testing.T) {
	w := newWorld(t)
	v := w.make(specOf("hostile"))
	w.data = t.TempDir() // A controller that has never heard of the share.
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

package nfs

import (
	"fmt"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// As many copies as there may be wait for one share. Those on others are not turned away.
func TestCopiesAreCountedByShare(t *testing.T) {
	w, _ := newPair(t)
	w.make(onShare("one", "one"))
	w.make(onShare("other", "other"))
	join := func(c *copies, name, shareName string) error {
		s, h := w.opened(onShare("x", shareName))
		_, _, err := c.join(name, &record{}, &making{engine: w.engine, share: s, home: h})
		return err
	}
	c := newCopies(paceOf(0))
	defer c.close()
	for i := range maxCopies {
		w.must(join(c, fmt.Sprint("copy", i), "one"))
	}
	w.fails("one more", join(c, "more", "one"), backends.Busy, "ask again")
	w.must(join(c, "on another", "other"))
}

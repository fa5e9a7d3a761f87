package nfs

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/tree"
)

// The maximum number of copies waits for one share. Copies on other shares are not turned away.
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
	defer func() { w.must(c.close(t.Context())) }()
	for i := range maxCopies {
		w.must(join(c, fmt.Sprint("copy", i), "one"))
	}
	w.fails("one more", join(c, "more", "one"), backends.Busy, "ask again")
	w.must(join(c, "on another", "other"))
}

// The copies on all exports of one filesystem are counted together: they share its space and its server's capacity.
func TestCopiesAreCountedByFilesystem(t *testing.T) {
	w := newWorld(t)
	w.must(os.MkdirAll(filepath.Join(filepath.Dir(w.root), "other"), 0o755))
	beside := specOf("other")
	beside.Parameters = &Parameters{Server: testServer, Share: "/other"}
	c := newCopies(paceOf(0))
	defer func() { w.must(c.close(t.Context())) }()
	join := func(name string, spec backends.Spec) (*job, error) {
		s, h := w.opened(spec)
		j, _, err := c.join(name, &record{}, &making{engine: w.engine, share: s, home: h})
		return j, err
	}
	j, err := join("first", specOf("one"))
	w.must(err)
	one, _ := w.opened(specOf("one"))
	other, _ := w.opened(beside)
	if c.turnsOn(one) != c.turnsOn(other) {
		t.Error("copies on two exports of a filesystem do not wait for each other")
	}
	c.plan(one, &j.progress, 1000)
	if others := c.plan(other, new(tree.Progress), 1); others != 1000 {
		t.Errorf("beside a copy of 1000 bytes on another export, others take %d", others)
	}
	for i := range maxCopies - 1 {
		w.must(second(join(fmt.Sprint("copy", i), specOf("one"))))
	}
	w.fails("one more, on the other export", second(join("more", beside)), backends.Busy, "ask again")
}

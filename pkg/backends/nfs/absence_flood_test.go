package nfs

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
	"github.com/stowage-csi/stowage/tests/stall"
)

// Only one look at a time works on a share. A second one proves nothing, and is answered at once: it waits for no
// mutex, and blocks no other call on the share.
func TestALookBesideAnother(t *testing.T) {
	w, slow := newSlowWorld(t)
	w.quiet(onSlow("x"))
	v := w.make(onSlow("earlier"))
	slow.StopAt(t, stall.Change, 1) // The first look renames its permit.
	first := make(chan bool, 1)
	go func() { first <- w.IsAbsent(t.Context(), onSlow("one")) }()
	w.eventually("coming to a change", func() bool { return slow.Stopped(t) })
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if w.IsAbsent(ctx, onSlow("two")) {
		t.Error("a look beside another one proves something")
	}
	if n := w.pool.GivenUp(); n != 0 {
		t.Errorf("%d looks hang that were given up, want that the second waits for nothing", n)
	}
	slow.Continue(t)
	if !<-first {
		t.Error("the first look proves nothing")
	}
	w.must(second(w.Get(t.Context(), v.Handle)))
	if !w.IsAbsent(t.Context(), onSlow("two")) {
		t.Error("after the first look has ended another one proves nothing")
	}
}

// In a flood of refused creations only one at a time costs the server more than its refusal. Creations that are not
// refused cost the same as ever. The comparison tolerates the cost of one look, because the kernel sends some requests
// late.
func TestWhatRefusedCreationsCost(t *testing.T) {
	w, slow := newSlowWorld(t)
	w.quiet(onSlow("x"))
	w.make(onSlow("earlier"))
	w.must(w.janitors.close(t.Context())) // A refusal wakes one, whose requests come at any time.
	const calls = 8
	cost := func(call func()) int {
		before := slow.Requests(t)
		for range calls {
			call()
		}
		return slow.Requests(t) - before
	}
	refuse := func() {
		spec := onSlow("refused")
		spec.Capacity.RequiredBytes = 1 << 60
		w.fails("more than there is", second(w.Create(t.Context(), spec)), backends.Exhausted)
	}
	proven := 0
	look := func() {
		if w.IsAbsent(t.Context(), onSlow("refused")) {
			proven++
		}
	}
	made := 0
	create := func() { made++; w.must(second(w.Create(t.Context(), onSlow(fmt.Sprint("made", made))))) }
	refusals, creations := cost(refuse), cost(create)
	looks := cost(look)
	t.Logf("requests of %d calls: refusals %d, creations %d, looks %d", calls, refusals, creations, looks)
	if proven != calls {
		t.Errorf("%d of %d looks prove something", proven, calls)
	}
	if now := cost(create); now > creations+looks/calls {
		t.Errorf("after looks the creations cost %d requests, and %d before", now, creations)
	}
	p, err := w.target(onSlow("x"))
	w.must(err)
	ended, err := w.onlyLook(p)
	w.must(err)
	proven = 0
	if beside := cost(func() { refuse(); look() }); proven > 0 || beside > refusals+looks/calls {
		t.Errorf("beside a look the refusals cost %d requests, and %d of their looks prove something; want %d, and none",
			beside, proven, refusals)
	}
	ended()
	if look(); proven != 1 {
		t.Error("after a look has ended the next one proves nothing")
	}
}

// If the answer to a rename of the permit is lost, or reports a failure, the permit has its new name all the same.
// Neither the look nor the next calls mistake that for the work of another controller.
func TestALostAnswerToTheRenameOfAPermit(t *testing.T) {
	w, slow := newSlowWorld(t)
	w.quiet(onSlow("x"))
	w.make(onSlow("earlier"))
	slow.DenyMove(t, 1)
	if !w.IsAbsent(t.Context(), onSlow("one")) {
		t.Error("with the permit under its new name nothing is proven")
	}
	w.must(second(w.Create(t.Context(), onSlow("two"))))
}

// A look changes nothing in lists, so it drops none of the entries that are remembered for while the share is away.
func TestALookForgetsNothing(t *testing.T) {
	w, spec := newWorld(t), specOf("one")
	w.make(specOf("earlier"))
	_, h := w.opened(spec)
	turn := w.seen.turn(h.Identity())
	if !w.absent(spec) {
		t.Error("it is not absent")
	}
	if now := w.seen.turn(h.Identity()); now != turn {
		t.Errorf("a look has %d changes noted", now-turn)
	}
}

// A look that has waited past the end of its call makes no request to the server.
func TestAnEndedLookAsksForNothing(t *testing.T) {
	w, slow := newSlowWorld(t)
	w.quiet(onSlow("x"))
	m := w.making(onSlow("one"), volumeCalls)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	h := m.home.Until(ended)
	before := slow.Requests(t)
	for what, step := range map[string]func() error{
		"leading":    func() error { return second(m.lead(ended, h, volumeCalls, "a test's")) },
		"renaming":   func() error { return m.rename(h, volumeCalls) },
		"confirming": func() error { return m.stillLeads(h, volumeCalls, m.turn) },
	} {
		if err := step(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s after the end: %v, want that the context has ended", what, err)
		}
	}
	if now := slow.Requests(t); now != before {
		t.Errorf("the server was sent %d requests", now-before)
	}
}

// A look that ends in the middle of its removals removes nothing more.
func TestALookEndsBetweenRemovals(t *testing.T) {
	w := newWorld(t)
	w.quiet(specOf("x"))
	m := w.making(specOf("one"), volumeCalls)
	for folder, row := range map[string]struct {
		names  string
		remove func(h *share.Home) error
	}{
		share.Staging: {"id" + suffix + ".%d", func(h *share.Home) error { return endChanges(h, "id", "") }},
		share.Controllers: {"id%d", func(h *share.Home) error { // of an earlier version
			return second(m.lead(t.Context(), h, volumeCalls, "a test's"))
		}},
	} {
		seen := map[int]bool{}
		for n, done := 0, false; !done; n++ {
			for i := range 2 {
				w.write("", share.HomeName, folder, fmt.Sprintf(row.names, i))
			}
			done = row.remove(m.home.Until(&ending{t.Context(), n})) == nil
			left, err := filepath.Glob(w.path(share.HomeName, folder, "id*"))
			w.must(err)
			seen[len(left)] = true
		}
		if !seen[0] || !seen[1] || !seen[2] {
			t.Errorf("of two files in %s it left %v, want that it left each number once", folder, seen)
		}
	}
}

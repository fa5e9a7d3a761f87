package nfs

import (
	"os"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// watched is a world whose share is known, and whose trash a janitor has looked at. Nobody looks at it by himself.
func watched(t *testing.T) (*world, *share.Home) {
	t.Helper()
	w := newWorld(t)
	w.configured("one")
	w.nodeOnly = true
	w.reopen()
	_, h := w.opened(specOf("x"))
	w.laid.note(h)
	w.janitors.mu.Lock()
	defer w.janitors.mu.Unlock()
	w.janitors.known[h.Address().String()] = true // No call wakes the janitor.
	return w, h
}

// A record that was moved away is put back at the next look, without that anybody asks for what it is of, and whatever
// the janitor is busy with.
func TestLooksPutBack(t *testing.T) {
	w, h := watched(t)
	spec := in("one", "dir/one", deleteData)
	now := w.recordOf(w.make(spec))
	earlier := *now
	earlier.Turn = "0123456789abcdef"
	for range 2 { // A look that finds nothing comes before the second.
		w.misplaced(now, &earlier, false)
		w.janitors.look(map[string]bool{})
		if _, err := inPlace(h, volumeKind, now.ID); err != nil {
			t.Errorf("after a look: %v", err)
		}
		w.janitors.look(map[string]bool{})
	}
	w.isWhole(spec, now)
	if !w.idle() {
		t.Error("a janitor was woken, and there was nothing for it to do")
	}
}

// A look that fails makes nothing of what lay there before forgotten: where each second one fails, the janitor would
// never be woken.
func TestLooksThatFailForgetNothing(t *testing.T) {
	w, _ := watched(t)
	r := w.recordOf(w.make(in("one", "dir/one", deleteData)))
	w.must(os.Rename(w.path(share.HomeName, share.Volumes, r.ID+suffix),
		w.path(share.HomeName, share.Trash, r.key()+suffix)))
	w.noticed()
	seen := w.janitors.look(map[string]bool{})
	staging := w.path(share.HomeName, share.Staging)
	w.must(os.Rename(staging, staging+".aside"))
	seen = w.janitors.look(seen)
	w.must(os.Rename(staging+".aside", staging))
	if !w.idle() {
		t.Error("a janitor was woken by what was seen once")
	}
	w.janitors.look(seen)
	w.tidy(0, 0)
}

// What an earlier version of the driver has left in the trash is looked for without a call.
func TestLooksHaveTheTrashLookedAt(t *testing.T) {
	w := newWorld(t)
	w.configured("one")
	w.make(specOf("zero"))
	w.nodeOnly = true
	w.reopen()
	_, h := w.opened(specOf("x"))
	w.janitors.look(map[string]bool{})
	w.eventually("a look at the whole trash", func() bool { return w.laid.on(h) })
}

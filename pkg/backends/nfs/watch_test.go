package nfs

import (
	"os"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// watched returns a world whose share is known, and whose trash counts as checked by a janitor. No process looks at it
// by itself.
func watched(t *testing.T) (*world, *share.Home) {
	t.Helper()
	w := newWorld(t)
	w.configured("one")
	w.quiet(specOf("x"))
	_, h := w.opened(specOf("x"))
	w.laid.note(h, nil)
	return w, h
}

// A record that was moved away is put back at the next look, without any call for its item, and whatever the janitor is
// busy with.
func TestLooksPutBack(t *testing.T) {
	w, h := watched(t)
	spec := in("one", "dir/one", deleteData)
	now := w.recordOf(w.make(spec))
	earlier := *now
	earlier.Turn = "0123456789abcdef"
	for range 2 { // A look that finds nothing comes before the second.
		w.misplaced(now, &earlier, false)
		w.janitors.look().Wait()
		if _, err := inPlace(h, volumeKind, now.ID); err != nil {
			t.Errorf("after a look: %v", err)
		}
		w.janitors.look().Wait()
	}
	w.isWhole(spec, now)
	if !w.idle() {
		t.Error("a janitor was woken, and there was nothing for it to do")
	}
}

// A failed look does not drop the remembered entries: if every second look failed, the janitor would never be woken.
func TestLooksThatFailForgetNothing(t *testing.T) {
	w, _ := watched(t)
	r := w.recordOf(w.make(in("one", "dir/one", deleteData)))
	w.must(os.Rename(w.path(share.HomeName, share.Volumes, r.ID+suffix),
		w.path(share.HomeName, share.Trash, r.key()+suffix)))
	w.noticed()
	w.janitors.look().Wait()
	staging := w.path(share.HomeName, share.Staging)
	w.must(os.Rename(staging, staging+".aside"))
	w.janitors.look().Wait()
	w.must(os.Rename(staging+".aside", staging))
	if !w.idle() {
		t.Error("a janitor was woken by what was seen once")
	}
	w.janitors.look().Wait()
	w.tidy(0, 0)
}

// Remains of an earlier version of the driver in the trash are found without a call.
func TestLooksHaveTheTrashLookedAt(t *testing.T) {
	w := newWorld(t)
	w.configured("one")
	w.make(specOf("zero"))
	w.nodeOnly = true
	w.reopen()
	_, h := w.opened(specOf("x"))
	w.janitors.look().Wait()
	w.eventually("a look at the whole trash", func() bool { return w.laid.on(h) })
}

// A slow look, as at a share with a large trash, does not count as a call that the server does not answer: calls
// continue there. It also prevents no look at another share.
func TestLooksThatTakeLong(t *testing.T) {
	w, slow := newSlowWorld(t)
	spec, long := in("one", "dir/one", deleteData), onSlow("two")
	w.quiet(spec, long)
	now := w.recordOf(w.make(spec))
	w.make(long)
	earlier := *now
	earlier.Turn = "0123456789abcdef"
	_, h := w.opened(spec)
	slow.Stop(t)
	looks := w.janitors.look()
	// Stimulus: longer than a server may take to answer a question.
	<-time.After(probeTime + 2*time.Second)
	if n := w.pool.GivenUp(); n != 0 {
		t.Errorf("%d calls count as given up, want none: no call on that share is let in until they have ended", n)
	}
	w.misplaced(now, &earlier, false)
	w.eventually("putting the record back", func() bool {
		w.janitors.look()
		_, err := inPlace(h, volumeKind, now.ID)
		return err == nil
	})
	slow.Continue(t)
	looks.Wait()
}

package nfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// crowd fills the staging folder with the given number of files with long names.
func (w *world) crowd(count int) {
	w.Helper()
	w.crowdIn(share.Staging, "", count)
}

// crowdIn fills a folder with the given number of files, whose long names begin with a prefix.
func (w *world) crowdIn(folder, prefix string, count int) {
	w.Helper()
	for i := range count {
		name := fmt.Sprintf("%s%06d", prefix, i)
		name += strings.Repeat("x", 246-len(name))
		w.must(os.WriteFile(w.path(share.At(folder, name)), nil, 0o600))
	}
	w.noticed()
}

// An attacker fills the staging folder with names. That does not prevent other items from being created or deleted.
func TestCrowdedStagingStopsNoCall(t *testing.T) {
	w := newWorld(t)
	v := w.make(specOf("one"))
	w.crowd(125_000)
	v2 := w.make(specOf("two"))
	_, err := w.Expand(t.Context(), v2.Handle, backends.CapacityRange{RequiredBytes: 4 << 20})
	w.must(err)
	w.must(w.Delete(t.Context(), v.Handle))
}

// Staging and trash have too many names for one list, as after an interrupted removal of a wide and deep directory.
// They are removed all the same.
func TestCrowdedFoldersAreEmptied(t *testing.T) {
	w := newWorld(t)
	v := w.make(specOf("one"))
	r := w.recordOf(v)
	w.must(w.Delete(t.Context(), v.Handle))
	w.tidy(0, 0)
	w.shut()
	w.inTrash(r, r.key()+suffix)
	w.crowdIn(share.Trash, r.key()+".", 125_000)
	w.crowd(125_000)
	w.hurry(func(p *pace) { p.patience = 200 * time.Millisecond })
	w.eventually("removing the last that has a record", func() bool {
		_, err := os.Lstat(w.path(share.HomeName, share.Trash, r.key()+suffix))
		return errors.Is(err, fs.ErrNotExist)
	})
	w.tidy(0, 0)
}

// A look at the remains remembers only some names of a folder with many, and has it examined more closely at once.
func TestCrowdedFolderIsNotRemembered(t *testing.T) {
	w := newWorld(t)
	w.make(specOf("one"))
	w.crowd(mostLeft + 1)
	w.nodeOnly = true // No other process looks.
	w.reopen()
	w.janitors.look().Wait()
	w.janitors.lookouts.mu.Lock()
	defer w.janitors.lookouts.mu.Unlock()
	for on, names := range w.janitors.lookouts.lying {
		if len(names) != mostLeft {
			t.Errorf("a look at %s remembers %d names, want %d", on, len(names), mostLeft)
		}
	}
	if len(w.janitors.lookouts.lying) != 1 {
		t.Errorf("looks at %d shares are remembered, want those at one", len(w.janitors.lookouts.lying))
	}
	if w.idle() {
		t.Error("no janitor has been woken")
	}
}

// The time to forget names that are gone does not grow with the square of their number.
func TestManySightingsAreForgottenSoon(t *testing.T) {
	const many = 300_000
	w := newWorld(t)
	w.make(specOf("one"))
	p, err := w.target(specOf("one"))
	w.must(err)
	s, release, err := w.pool.Hold(t.Context(), p.Address)
	w.must(err)
	defer release()
	j := newJanitors(w.engine)
	names := make([]string, many)
	for i := range names {
		names[i] = fmt.Sprintf("%0100d", i)
		j.seen[s.Address.String()+" "+names[i]] = sighting{}
		j.seen[s.Address.String()+" gone "+names[i]] = sighting{}
	}
	ended := make(chan struct{})
	go func() { defer close(ended); j.forgetBut(s, names) }()
	select {
	case <-ended:
	case <-time.After(patience):
		t.Fatal("it has not ended")
	}
	if len(j.seen) != many {
		t.Errorf("%d are remembered, want %d", len(j.seen), many)
	}
}

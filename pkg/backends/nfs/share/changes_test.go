package share

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/pkg/safepath"
)

// A name is not changed while a file is being read.
func TestChangesWaitForReaders(t *testing.T) {
	one, two := At(Volumes, "one"), At(Trash, "two")
	for name, row := range map[string]struct {
		read   string
		change func(h *Home) error
	}{
		"moved":    {one, func(h *Home) error { return h.Move(Volumes, "one", Trash, "one") }},
		"removed":  {one, func(h *Home) error { return h.Remove(Volumes, "one") }},
		"replaced": {one, func(h *Home) error { return h.Replace(Volumes, "one", []byte("other")) }},
		"put back": {two, func(h *Home) error { return h.PutBack(Trash, "two", Volumes, "two") }},
	} {
		t.Run(name, func(t *testing.T) {
			h := homeWith(t, one, two)
			lock, done := h.names.use(row.read)
			defer done()
			lock.RLock() // as a reader does
			ended := make(chan error, 1)
			go func() { ended <- row.change(h) }()
			for late := time.After(2 * time.Minute); lock.TryRLock(); { // There is no new reader once a writer waits.
				lock.RUnlock()
				select {
				case err := <-ended:
					t.Fatalf("it was %s while somebody reads (%v)", name, err)
				case <-late:
					t.Fatal("it neither waits nor ends")
				// Stimulus: a pause between two looks.
				case <-time.After(time.Millisecond):
				}
			}
			lock.RUnlock()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

// No file is looked at, or touched, while its name is changed: the kernel's client would give the file another name.
func TestLooksWaitForChanges(t *testing.T) {
	token, claim := At(Staging, "one"), At(Claims, "one")
	for name, row := range map[string]struct {
		path string
		look func(h *Home) error
	}{
		"looked at": {token, func(h *Home) error { _, err := h.Look(Staging, "one"); return err }},
		"touched":   {token, func(h *Home) error { return h.Touch("one") }},
		"judged":    {token, func(h *Home) error { _, err := h.Written(Staging, "one"); return err }},
		"read":      {token, func(h *Home) error { _, err := h.Read(Staging, "one"); return err }},
		"asked for": {claim, func(h *Home) error { _, err := h.Claimed("one"); return err }},
	} {
		t.Run(name, func(t *testing.T) {
			h := homeWith(t, token)
			changing, goOn := make(chan struct{}), make(chan struct{})
			changed := make(chan error, 1)
			go func() {
				changed <- h.names.change(func() error { close(changing); <-goOn; return nil }, row.path)
			}()
			<-changing
			ended := make(chan error, 1)
			go func() { ended <- row.look(h) }()
			for late := time.After(2 * time.Minute); h.names.usersOf(row.path) < 2; {
				select {
				case err := <-ended:
					t.Fatalf("it was %s while it is changed (%v)", name, err)
				case <-late:
					t.Fatal("it neither waits nor ends")
				// Stimulus: a pause between two looks.
				case <-time.After(time.Millisecond):
				}
			}
			close(goOn)
			if err := errors.Join(<-changed, <-ended); err != nil {
				t.Error(err)
			}
		})
	}
}

// usersOf returns the number of goroutines that hold the lock of a name, or wait for it.
func (l *nameLocks) usersOf(path string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all[path] == nil {
		return 0
	}
	return l.all[path].users
}

// A name is changed while others are, however many requests for those hang. No lock is kept for an unused name.
func TestChangesWaitForNoOther(t *testing.T) {
	h := homeWith(t, At(Volumes, "one"))
	goOn, changing := make(chan struct{}), sync.WaitGroup{}
	begun := make(chan struct{})
	const others = 2000
	for i := range others {
		changing.Go(func() {
			_ = h.names.change(func() error { begun <- struct{}{}; <-goOn; return nil }, At(Volumes, fmt.Sprint("other", i)))
		})
	}
	late := time.After(2 * time.Minute)
	for i := range others {
		select {
		case <-begun:
		case <-late:
			t.Fatalf("%d of %d changes of different names are under way", i, others)
		}
	}
	if err := h.Move(Volumes, "one", Trash, "one"); err != nil {
		t.Error(err)
	}
	if _, err := h.Read(Trash, "one"); err != nil {
		t.Error(err)
	}
	close(goOn)
	changing.Wait()
	if len(h.names.all) > 0 {
		t.Errorf("%d locks are left", len(h.names.all))
	}
}

// homeWith returns a Home with the given files.
func homeWith(t *testing.T, paths ...string) *Home {
	t.Helper()
	dir, err := os.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dir.Close() })
	for _, folder := range []string{"", Volumes, Trash, Staging, Claims} {
		if err := os.Mkdir(filepath.Join(dir.Name(), HomeName, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range paths {
		if err := os.WriteFile(filepath.Join(dir.Name(), path), []byte("text"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return &Home{dir: dir, files: safepath.NewRoot(dir), names: new(nameLocks)}
}

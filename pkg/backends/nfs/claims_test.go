package nfs

import (
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// A file among the claims is no claim. It does not prevent dead claims from being dropped.
func TestStrayFileStopsNoSweep(t *testing.T) {
	w, h := watched(t)
	spec := in("one", "dir/one", deleteData)
	w.make(spec)
	s, _ := w.opened(spec)
	dead := w.path(share.HomeName, share.Claims, claimOf("dir/dead"))
	w.must(os.Symlink(strings.Repeat("0", 32)+"-"+strings.Repeat("0", 16), dead))
	for _, name := range []string{strings.Repeat("0", 32), strings.Repeat("f", 32)} { // before and after it in any order
		w.write("", share.HomeName, share.Claims, name)
	}
	w.noticed()
	w.must(w.janitors.claims(s, h))
	if _, err := os.Lstat(dead); !os.IsNotExist(err) {
		t.Errorf("the claim of the dead: %v", err)
	}
	w.fails("a file in a claim's place", second(w.Create(t.Context(), stray(w))), backends.Unusable, "no symbolic link")
}

// However many files are among the claims, and however often they are checked, the log has one line an hour.
func TestStrayFilesFloodNoLog(t *testing.T) {
	w, h := watched(t)
	s, _ := w.opened(specOf("x"))
	const files = 30
	for n := range files {
		w.write("", share.HomeName, share.Claims, fmt.Sprintf("%032x", n))
	}
	w.noticed()
	lines := func() int { return strings.Count(w.log.String(), "what is no claim") }
	for range 3 {
		w.must(w.janitors.claims(s, h))
	}
	if n := lines(); n != 1 || !strings.Contains(w.log.String(), fmt.Sprintf("count=%d ", files)) {
		t.Errorf("the log has %d lines after three looks at %d files, want one that counts them:\n%s", n, files, w.log)
	}
	w.janitors.mu.Lock()
	w.janitors.strays[s.Address.String()] = time.Now().Add(-straysTold)
	w.janitors.mu.Unlock()
	w.must(w.janitors.claims(s, h))
	if n := lines(); n != 2 {
		t.Errorf("the log has %d lines of files that are there an hour later, want 2", n)
	}
}

// stray returns a spec with a file in place of its claim.
func stray(w *world) backends.Spec {
	w.Helper()
	spec := in("two", "dir/two", deleteData)
	w.write("", share.HomeName, share.Claims, claimOf("dir/two"))
	w.noticed()
	return spec
}

// A volume has lost its claim. The log says so, and how to restore it. No claim is created, because another volume may
// be inside the directory by now, and would be removed with it.
func TestLostClaimIsTold(t *testing.T) {
	w, h := watched(t)
	v := w.make(in("one", "dir/one", deleteData))
	w.make(in("well", "dir/well", deleteData))
	r := w.recordOf(v)
	claim := share.At(share.Claims, claimOf(r.SubDir))
	w.must(os.Remove(w.path(claim)))
	w.noticed()
	inner := w.make(in("inner", "dir/one/inner", deleteData))
	w.write("text", "dir", "one", "inner", "file")
	s, _ := w.opened(specOf("x"))
	w.must(w.janitors.claims(s, h))
	for _, text := range []string{"directory=dir/one ", "claim=" + claim, "owner=" + r.key()} {
		if !strings.Contains(w.log.String(), text) {
			t.Errorf("the log does not say %q:\n%s", text, w.log)
		}
	}
	if strings.Contains(w.log.String(), "directory=dir/well") {
		t.Errorf("the log names a volume that has its claim:\n%s", w.log)
	}
	w.must(w.Delete(t.Context(), v.Handle))
	if text, err := os.ReadFile(w.path("dir", "one", "inner", "file")); err != nil || string(text) != "text" {
		t.Errorf("a file of the volume inside is %q (%v)", text, err)
	}
	w.must(w.Delete(t.Context(), inner.Handle))
	w.tidy(1, 0)
}

// heeding is a log that checks the lock of the janitors.
type heeding struct {
	janitors *janitors
	free     bool // whether their lock was free
}

func (h *heeding) Write(line []byte) (int, error) {
	if h.free = h.janitors.mu.TryLock(); h.free {
		h.janitors.mu.Unlock()
	}
	return len(line), nil
}

// A slow log, such as a full pipe, delays no janitor.
func TestStrayFilesAreToldWithoutALock(t *testing.T) {
	log := &heeding{}
	log.janitors = newJanitors(&engine{log: slog.New(slog.NewTextHandler(log, nil))})
	log.janitors.tellOfStrays("server:/share", 1, fs.ErrInvalid)
	if !log.free {
		t.Error("the log is written to while the lock is held, or not at all")
	}
}

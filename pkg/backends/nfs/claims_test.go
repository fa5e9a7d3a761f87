package nfs

import (
	"os"
	"strings"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// A file among the claims is none. It keeps no claim of the dead from being dropped.
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

// stray is a spec in whose claim's place there is a file.
func stray(w *world) backends.Spec {
	w.Helper()
	spec := in("two", "dir/two", deleteData)
	w.write("", share.HomeName, share.Claims, claimOf("dir/two"))
	w.noticed()
	return spec
}

// A volume has lost its claim. The log says so, and how to give it one again; no claim is made, since another volume
// may be inside the directory by now, which would go with it.
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

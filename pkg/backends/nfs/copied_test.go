package nfs

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/export"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// copyOver copies a file of the driver's own directory from the world's share to another.
func (w *world) copyOver(to string, elements ...string) {
	w.Helper()
	name := filepath.Join(append([]string{share.HomeName}, elements...)...)
	data, err := os.ReadFile(w.path(name))
	w.must(err)
	w.must(os.RemoveAll(filepath.Join(to, name)))
	w.must(os.WriteFile(filepath.Join(to, name), data, 0o644))
}

// newTwins returns a world with two shares of one identity, which was set while both were empty, and a volume on each.
func newTwins(t *testing.T) (w *world, other string, both []string) {
	t.Helper()
	w, other = newPair(t)
	for _, name := range []string{"one", "other"} {
		w.leadsOn(onShare("x", name))
	}
	w.shut()
	w.copyOver(other, "share.json")
	w.data = t.TempDir()
	w.open()
	both = []string{w.make(onShare("on-one", "one")).Handle, w.make(onShare("on-other", "other")).Handle}
	return w, other, both
}

// lost removes a share and makes the next call mount it again.
func (w *world) lost(root string, address export.Address) (back func()) {
	w.Helper()
	w.must(os.Rename(root, root+".lost"))
	w.pool.Distrust(address, unix.ESTALE)
	return func() { w.Helper(); w.must(os.Rename(root+".lost", root)) }
}

// The owner of one share gives it the identity of another. The volumes of both are listed, in pages of any size.
func TestCopiedIdentityHidesNoShare(t *testing.T) {
	w, _, both := newTwins(t)
	w.lists(both...)
	for i := range 8 {
		both = append(both, w.make(onShare(fmt.Sprint("v", i), []string{"one", "other"}[i%2])).Handle)
	}
	w.lists(both...)
	text := w.log.String()
	for _, part := range []string{"two shares have one identity", "share=@one", "other=@other"} {
		if !bytes.Contains([]byte(text), []byte(part)) {
			t.Errorf("the log does not say %q:\n%s", part, text)
		}
	}
	w.must(w.Delete(t.Context(), both[0]))
	w.must(w.Delete(t.Context(), both[3]))
	w.lists(slices.Concat(both[1:3], both[4:])...)
}

// The answer of one of them does not say what is on the other.
func TestCopiedIdentityStandsForNoShareThatIsAway(t *testing.T) {
	w, other, both := newTwins(t)
	w.lists(both...)
	for name, root := range map[string]string{"one": w.root, "other": other} {
		back := w.lost(root, w.named[name])
		w.lists(both...)
		back()
		w.lists(both...)
	}
	w.make(onShare("new", "one"))
	w.lost(other, w.named["other"])
	_, _, err := w.List(t.Context(), backends.Page{})
	w.fails("a list of what is not known", err, backends.Unavailable, "@other")
}

// A share that gets the identity of another while it has volumes is away: no handle leads to it now.
func TestShareWithAnotherIdentityIsAway(t *testing.T) {
	w, other := newPair(t)
	v := w.make(onShare("on-one", "one"))
	w.make(onShare("on-other", "other"))
	w.copyOver(other, "share.json")
	w.reopen()
	_, _, err := w.List(t.Context(), backends.Page{})
	w.fails("a list", err, backends.Unavailable, "@other", "identity")
	_, err = w.Create(t.Context(), onShare("new", "other"))
	w.fails("making another", err, backends.Unavailable, "@other", "identity")
	_, err = w.Get(t.Context(), v.Handle)
	w.must(err)
}

// Records of one ID, with different handles, are on two shares of one identity. A page that ends between them does not
// make the next page omit one.
func TestPagesBetweenRecordsOfOneID(t *testing.T) {
	w, other, both := newTwins(t)
	one := idOf(t, volumeKind, both[0])
	w.copyOver(other, share.Volumes, one+suffix)
	path := filepath.Join(other, share.HomeName, share.Volumes, one+suffix)
	data, err := os.ReadFile(path)
	w.must(err)
	r, err := decodeRecord(data, path)
	w.must(err)
	home, _, _, _ := decodeHandle(volumeKind, both[0])
	at := func(where string) string {
		text, err := handle{kind: volumeKind, share: where, home: home.home, id: one}.encode()
		w.must(err)
		return text
	}
	for _, where := range []string{"a", "other", "zzz"} {
		w.must(os.WriteFile(path, bytes.ReplaceAll(data, []byte(r.Handle), []byte(at(where))), 0o644))
		w.noticed()
		w.lists(append(slices.Clone(both), at(where))...)
	}
}

// A copy of a whole share has the same records. Each volume is listed once, as on its own share, and only that share
// loses deleted volumes.
func TestCopiedShareListsEachVolumeOnce(t *testing.T) {
	w, other := newPair(t)
	v := w.make(onShare("one", "other"))
	w.shut()
	w.must(os.Remove(w.root))
	w.must(os.CopyFS(w.root, os.DirFS(other)))
	path := w.path(share.At(share.Volumes, idOf(t, volumeKind, v.Handle)+suffix))
	data, err := os.ReadFile(path)
	w.must(err)
	w.must(os.WriteFile(path, bytes.Replace(data, []byte(`"name": "one"`), []byte(`"name": "not"`), 1), 0o644))
	w.open()
	w.lists(v.Handle)
	for _, limit := range []int{0, 1} {
		if have := w.listed(t.Context(), limit); !slices.Equal(have, []string{"one"}) {
			t.Errorf("in pages of %d it lists %v, want the volume as its own share has it", limit, have)
		}
	}
	w.must(w.Delete(t.Context(), v.Handle))
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the deletion has touched the copy: %v", err)
	}
}

// A share is listed once even if it cannot be written to, or if one of its addresses no longer leads to it.
func TestOneShareByTwoAddresses(t *testing.T) {
	w := newWorld(t)
	link := filepath.Join(filepath.Dir(filepath.Dir(w.root)), slowServer)
	w.must(os.Symlink(testServer, link))
	w.configured("one")
	w.config.Shares = append(w.config.Shares, ShareConfig{Name: "other", Server: slowServer, Share: testShare})
	w.reopen()
	both := []string{w.make(onShare("a", "one")).Handle, w.make(onShare("b", "other")).Handle}
	w.lists(both...)
	w.must(os.Rename(w.path(share.At(share.Staging, "")), w.path(share.HomeName, "away")))
	w.noticed()
	w.lists(both...)
	one, other := place{Address: w.named["one"], Name: "one"}, place{Address: w.named["other"], Name: "other"}
	if !w.seen.areOne(one, other) {
		t.Error("they are taken for two shares because nobody can write a mark")
	}
	w.must(os.Rename(w.path(share.HomeName, "away"), w.path(share.At(share.Staging, ""))))
	w.noticed()
	w.lists(both...)
	left, err := os.ReadDir(w.path(share.At(share.Staging, "")))
	if err != nil || len(left) != 0 {
		t.Errorf("in staging there is %v, %v", left, err)
	}
	w.must(os.Remove(link))
	w.pool.Distrust(w.named["other"], unix.ESTALE)
	w.lists(both...)
	_, next, err := w.List(t.Context(), backends.Page{Limit: 1})
	w.must(err)
	both = append(both, w.make(onShare("c", "one")).Handle)
	_, _, err = w.List(t.Context(), backends.Page{Limit: 1, Token: next})
	w.must(err)
	w.lists(both...)
	unwell, _, err := w.ListHealth(t.Context(), backends.Page{})
	if err != nil || len(unwell) != 1 || unwell[0].Handle != both[1] {
		t.Errorf("what is unwell is %+v, %v; want what was made by the address that is gone", unwell, err)
	}
}

// The same holds if a third share has the identity, and is asked first.
func TestOneShareByTwoAddressesBesideACopy(t *testing.T) {
	w, other, both := newTwins(t)
	link := filepath.Join(filepath.Dir(filepath.Dir(w.root)), "again.test")
	w.must(os.Symlink(slowServer, link))
	w.config.Shares = append(w.config.Shares, ShareConfig{Name: "same", Server: "again.test", Share: testShare})
	w.reopen()
	both = append(both, w.make(onShare("by the other name", "same")).Handle)
	for range 2 {
		w.lists(both...)
	}
	_, next, err := w.List(t.Context(), backends.Page{Limit: 1})
	w.must(err)
	_, _, err = w.List(t.Context(), backends.Page{Limit: 1, Token: next})
	w.must(err)
	w.lost(other, w.named["other"])
	w.pool.Distrust(w.named["same"], unix.ESTALE)
	w.lists(both...)
}

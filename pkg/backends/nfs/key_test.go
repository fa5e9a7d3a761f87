package nfs

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// A share that has lost its key gets no new one: otherwise the names of its volumes would have other IDs, and could not
// be found. Calls without a name continue by handle. Once the key is restored, all calls work, without a restart.
func TestAShareWithoutItsKey(t *testing.T) {
	w, spec := newWorld(t), specOf("one")
	v, gone, key := w.make(spec), w.make(specOf("two")).Handle, w.path(share.HomeName, "key")
	w.shut()
	w.must(os.Rename(key, w.path("away")))
	w.data = t.TempDir() // Otherwise the note has the creation refused.
	w.configured("x")    // It is listed then.
	w.open()
	const wayOut = "restore it from a backup"
	_, err := w.Create(t.Context(), spec)
	w.fails("making it once more", err, backends.Unavailable, wayOut, "share.json")
	w.fails("finding it by its name", second(w.Find(t.Context(), spec)), backends.Unavailable, wayOut)
	w.fails("copying it", second(w.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "s", Volume: v.Handle})),
		backends.Unavailable, wayOut)
	w.must(second(w.Get(t.Context(), v.Handle)))
	if all := w.listed(t.Context(), 0); !slices.Equal(all, []string{"one", "two"}) {
		t.Errorf("the list has %q, want both volumes", all)
	}
	if w.absent(specOf("three")) {
		t.Error("without the key a name is absent")
	}
	w.must(second(w.node.Source(t.Context(), backends.Attachment{Handle: v.Handle})))
	w.ask("expanding it", func() error { return expanded(2<<10)(t.Context(), w.controllerSide, v.Handle) })
	w.ask("deleting the other one", func() error { return w.Delete(t.Context(), gone) })
	w.fails("getting what is gone", second(w.Get(t.Context(), gone)), backends.NotFound)
	if _, err := os.Lstat(key); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("there is another key: %v", err)
	}
	w.must(os.Rename(w.path("away"), key))
	w.leads()
	_, err = w.Create(t.Context(), spec)
	w.fails("making it once more, with its key", err, backends.Exists)
}

// A new key that is created by hand, as in the guide, loses the names, but no handle.
func TestANewKeyChangesNoHandle(t *testing.T) {
	w, spec := newWorld(t), specOf("one")
	v := w.make(spec)
	w.shut()
	w.must(os.WriteFile(w.path(share.HomeName, "key"), []byte(strings.Repeat("0a", 32)), 0o600))
	w.open()
	w.must(second(w.Get(t.Context(), v.Handle)))
	w.must(second(w.node.Source(t.Context(), backends.Attachment{Handle: v.Handle})))
	if all, _, err := w.List(t.Context(), backends.Page{}); err != nil || len(all) != 1 {
		t.Errorf("the list has %v, %v; want the one volume", all, err)
	}
	w.fails("finding it by its name", second(w.Find(t.Context(), spec)), backends.NotFound)
	w.ask("deleting it", func() error { return w.Delete(t.Context(), v.Handle) })
	w.make(spec)
}

// An interrupted first start has left only the key. It is used.
func TestAKeyWithoutAnIdentity(t *testing.T) {
	w := newWorld(t)
	text := strings.Repeat("0a", 32)
	w.write(text, share.HomeName, "key")
	v := w.make(specOf("one"))
	if now, err := os.ReadFile(w.path(share.HomeName, "key")); err != nil || string(now) != text {
		t.Errorf("the key is %s, %v; want the one that was there", now, err)
	}
	w.must(second(w.Get(t.Context(), v.Handle)))
}

// Nothing is proven while the share has another key than this process has read, or none: a volume that was created with
// another key has another ID.
func TestWithAnotherKeyNothingIsProven(t *testing.T) {
	w, spec := newWorld(t), specOf("one")
	w.quiet(spec)
	w.make(specOf("earlier"))
	key := w.path(share.HomeName, "key")
	text, err := os.ReadFile(key)
	w.must(err)
	w.must(os.Remove(key))
	if w.absent(spec) {
		t.Error("without the key it is absent")
	}
	w.write(strings.Repeat("0a", 32), share.HomeName, "key")
	if w.absent(spec) {
		t.Error("with another key it is absent")
	}
	if text := w.log.String(); !strings.Contains(text, "key") || !strings.Contains(text, "was replaced") {
		t.Errorf("the log does not say that the key was replaced:\n%s", text)
	}
	w.write(string(text), share.HomeName, "key")
	if !w.absent(spec) {
		t.Error("with its key it is not absent")
	}
}

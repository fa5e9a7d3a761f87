package nfs

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// forgets reports whether csi-provisioner forgets a volume after this answer: it is final, and the name is not found.
func (w *world) forgets(spec backends.Spec, answer error) bool {
	_, found := w.Find(w.Context(), spec)
	return !again(answer) && !backends.Is(answer, backends.Unusable) && backends.Is(found, backends.NotFound)
}

// A controller that may not end the permits of others cannot end their attempts either. So no refusal is final: another
// controller may still publish the item.
func TestNoRefusalIsFinalBeforeTheFence(t *testing.T) {
	permits := func(w *world) string { return w.path(share.HomeName, share.Controllers) }
	for name, refused := range map[string]func(w *world) string{
		"no permit is made": permits,
		"another's permit stays": func(w *world) string {
			names, err := filepath.Glob(filepath.Join(permits(w), "*."+string(volumeCalls)+".*"))
			w.must(err)
			if len(names) != 1 {
				w.Fatalf("there are %d permits, want the other's", len(names))
			}
			return names[0]
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, spec := newWorld(t), in("one", "one", deleteData)
			other := w.otherWorld()
			m, r := other.attempt(spec)
			undo := w.immutable(refused(w))
			_, err := w.Create(t.Context(), spec)
			w.fails("the first call", err, backends.Busy)
			_, err = w.Create(t.Context(), spec)
			forgotten := w.forgets(spec, err)
			undo()
			w.fails("a creation that may end no other", err, backends.Unavailable, unix.EPERM.Error(), "lsattr", "ask again")
			w.must(m.publish(t.Context(), r))
			if v, found := w.Find(t.Context(), spec); forgotten && found == nil {
				t.Errorf("%s was published after a final refusal", v.Handle)
			}
		})
	}
}

// A server exports an empty directory while its disk is away. A refusal there says nothing about the share.
func TestNoRefusalIsFinalWithoutAHome(t *testing.T) {
	for name, spoil := range map[string]func(w *world) (undo func()){
		"nothing may be made": func(w *world) func() { return w.immutable(w.root) },
		"there is no room": func(w *world) func() {
			var err error
			for n := 0; err == nil; n++ {
				err = os.WriteFile(w.path(fmt.Sprint("filler", n)), nil, 0o600)
			}
			return func() {}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, spec := newWorld(t), in("one", "one", deleteData)
			v := w.make(spec)
			w.shut()
			w.must(unix.Mount("empty", w.root, "tmpfs", 0, "nr_inodes=8"))
			undo := spoil(w)
			other := w.otherWorld()
			_, err := other.Create(t.Context(), spec)
			forgotten := other.forgets(spec, err)
			undo()
			other.shut()
			w.must(unix.Unmount(w.root, unix.MNT_DETACH))
			w.fails("a creation on the empty directory", err, backends.Unavailable, "ask again")
			w.open()
			if _, found := w.Get(t.Context(), v.Handle); forgotten && found == nil {
				t.Errorf("%s is there after a final refusal", v.Handle)
			}
		})
	}
}

package memory

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// stuck makes a directory impossible to remove until unstick is called, by a mount in it.
func stuck(t *testing.T, dir string) (unstick func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("NOT CHECKED: mounting needs root")
	}
	inside := filepath.Join(dir, "mounted")
	if err := os.MkdirAll(inside, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("memory-test", inside, "tmpfs", 0, "size=64k"); err != nil {
		t.Fatal(err)
	}
	mounted := true
	unstick = func() {
		if mounted {
			mounted = false
			if err := unix.Unmount(inside, 0); err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(unstick)
	return unstick
}

// TestWhatCannotBeRemovedIsStillThere checks that a failed deletion does not change the tables, and can be repeated.
func TestWhatCannotBeRemovedIsStillThere(t *testing.T) {
	b := opened(t, 1<<30)
	v := created(t, b, "v")
	s, err := b.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "s", Volume: v})
	if err != nil {
		t.Fatal(err)
	}
	g, err := b.CreateGroup(t.Context(), backends.GroupSpec{Name: "g", Volumes: []string{v, created(t, b, "w")}})
	if err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		files  string // of which handle
		remove func() error
		get    func() error
	}{
		"volume": {v, func() error { return b.Delete(t.Context(), v) },
			func() error { _, err := b.Get(t.Context(), v); return err }},
		"snapshot": {s.Handle, func() error { return b.DeleteSnapshot(t.Context(), s.Handle) },
			func() error { _, err := b.GetSnapshot(t.Context(), s.Handle); return err }},
		"group": {g.Snapshots[0].Handle, func() error { return b.DeleteGroup(t.Context(), g.Handle) },
			func() error { _, err := b.GetGroup(t.Context(), g.Handle); return err }},
	} {
		t.Run(name, func(t *testing.T) {
			unstick := stuck(t, b.files.data(row.files))
			before := b.used
			wants(t, "deleting what cannot be removed", row.remove(), backends.Unavailable)
			if err := row.get(); err != nil || b.used != before {
				t.Errorf("after that it is there with the error %v and %d bytes are taken, want %d", err, b.used, before)
			}
			unstick()
			if err := row.remove(); err != nil {
				t.Errorf("deleting it again: %v", err)
			}
			wants(t, "getting it then", row.get(), backends.NotFound)
			if b.used >= before {
				t.Errorf("%d bytes are taken, want less than %d", b.used, before)
			}
		})
	}
}

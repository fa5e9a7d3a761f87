package local

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/tests/testfs"
)

// unshared makes new files of a btrfs pool unable to share blocks with the existing ones, as chattr +C does in a pool
// that is in use: the kernel refuses to clone a file that is copied on write into one that is not.
func (f *fixture) unshared(t *testing.T) {
	t.Helper()
	testfs.Run(t, "chattr", "+C", f.in("image").folder(stagingFolder))
}

// A file that cannot be cloned is copied, which takes time: it must not be written to meanwhile.
func TestImagesThatCannotBeCloned(t *testing.T) {
	f := newPoolOn(t, "btrfs")
	v, dir := f.mountedVolume(t, "mounted")
	must(t, writeFile(filepath.Join(dir, "file"), "kept"))
	raw := f.create("image", "raw")
	must(t, os.WriteFile(testfs.Attach(t, f.use(raw.Handle)), []byte("written"), 0o600))
	idle := f.create("image", "idle")
	f.unshared(t)

	_, err := f.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "of raw", Volume: raw.Handle})
	hasKind(t, "CreateSnapshot of a raw volume in use", err, backends.InUse, raw.Handle)
	_, err = f.Clone(t.Context(), specIn("image", "of raw"), raw.Handle)
	hasKind(t, "Clone of a raw volume in use", err, backends.InUse, raw.Handle)
	_, err = f.CreateGroup(t.Context(), backends.GroupSpec{Name: "of raw", Volumes: []string{v.Handle, raw.Handle}})
	hasKind(t, "CreateGroup with a raw volume in use", err, backends.InUse, raw.Handle)

	f.snapshot("of idle", idle.Handle)
	f.freezeLimit = time.Nanosecond // Every copy of a mounted filesystem freezes it.
	_, err = f.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "late", Volume: v.Handle})
	hasKind(t, "CreateSnapshot of a mounted volume", err, backends.InUse, "freezeLimit")
	f.freezeLimit = time.Minute
	s := f.snapshot("of mounted", v.Handle)
	restored, err := f.Restore(t.Context(), specIn("image", "restored"), s.Handle)
	must(t, err)
	if have := f.readFrom(t, restored.Handle, "file"); have != "kept" {
		t.Errorf("the restored volume has %q, want %q", have, "kept")
	}
	if isFrozen(t, dir) {
		t.Error("the filesystem is still frozen")
	}
}

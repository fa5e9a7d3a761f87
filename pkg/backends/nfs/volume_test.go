package nfs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

func TestSubDirAndPermissions(t *testing.T) {
	w := newWorld(t)
	spec := in("pvc-1", "${pvc.metadata.namespace}/${pvc.metadata.name}-${pv.metadata.name}", deleteData)
	spec.Parameters.(*Parameters).MountPermissions = "2770"
	v := w.make(spec)
	if want := "team/claim-pvc-1"; v.Attributes["subDir"] != want {
		t.Errorf("the directory is %q, want %q", v.Attributes["subDir"], want)
	}
	info, err := os.Stat(w.path("team", "claim-pvc-1"))
	w.must(err)
	if want := os.ModeDir | os.ModeSetgid | 0o770; info.Mode() != want {
		t.Errorf("the permissions are %v, want %v", info.Mode(), want)
	}
	for path, want := range map[string]os.FileMode{"": 0o711, share.Volumes: 0o711, share.Snapshots: 0o700,
		share.Trash: 0o700, share.Burials: 0o700, "key": 0o600, "share.json": 0o644} {
		if info, err := os.Stat(w.path(share.HomeName, path)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v; want %v", path, info, err, want)
		}
	}
	if plain := w.make(specOf("pvc-2")); plain.Attributes["subDir"] != "pvc-2" {
		t.Errorf("without subDir the directory is %q, want the volume's name", plain.Attributes["subDir"])
	}
	spec = specOf("bad")
	spec.Parameters.(*Parameters).MountPermissions = "rwx"
	_, err = w.Create(t.Context(), spec)
	w.fails("permissions that are none", err, backends.Invalid, "octal")
}

// A volume with a larger context than CSI allows could not be staged anywhere. The claim's names may make it so large.
func TestContextsFitIntoTheirMessages(t *testing.T) {
	w := newWorld(t)
	deep := func(bytes int) string { return strings.Repeat(strings.Repeat("d", 99)+"/", bytes/100) }
	for name, subDir := range map[string]string{"plain": deep(3900) + "x",
		"of the claim": deep(3100) + strings.Repeat("${pvc.metadata.name}/", 4) + "x"} {
		spec := in(name, subDir, deleteData)
		spec.Claim.Name = strings.Repeat("c", 200)
		_, err := w.Create(t.Context(), spec)
		w.fails(name, err, backends.Invalid, "use a shorter")
	}
	w.make(in("shorter", deep(3000)+"x", deleteData))
}

// A copy keeps the permissions of its source's root, unless the class says otherwise.
func TestPermissionsOfCopies(t *testing.T) {
	w := newWorld(t)
	v := w.make(in("one", "one", deleteData))
	w.must(os.Chmod(w.path("one"), os.ModeSetgid|0o775))
	w.must(os.Chown(w.path("one"), 0, 4242))
	w.must(os.Chmod(w.path("one"), os.ModeSetgid|0o775))
	given := in("three", "three", deleteData)
	given.Parameters.(*Parameters).MountPermissions = "0700"
	for spec, want := range map[*backends.Spec]os.FileMode{ptr(in("two", "two",
		deleteData)): os.ModeDir | os.ModeSetgid | 0o775, &given: os.ModeDir | 0o700} {
		if _, err := w.Clone(t.Context(), *spec, v.Handle); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(w.path(spec.Name))
		w.must(err)
		if owner := info.Sys().(*syscall.Stat_t); info.Mode() != want || owner.Gid != 4242 {
			t.Errorf("the clone %s has %v and group %d, want %v and 4242", spec.Name, info.Mode(), owner.Gid, want)
		}
	}
}

func ptr[T any](value T) *T { return &value }

func TestOnDelete(t *testing.T) {
	w := newWorld(t)
	for _, policy := range []string{deleteData, retainData, archiveData} {
		v := w.make(in(policy, "dir/"+policy, policy))
		w.write("data", "dir", policy, "deep", "file")
		w.must(w.Delete(t.Context(), v.Handle))
		w.fails("deleting it again", w.Delete(t.Context(), v.Handle), backends.NotFound)
	}
	w.tidy(0, 0)
	kept, err := filepath.Glob(w.path("dir", "*", "deep", "file"))
	w.must(err)
	if len(kept) != 2 || !strings.HasPrefix(kept[0], w.path("dir", "archived-archive-")) ||
		kept[1] != w.path("dir", "retain", "deep", "file") {
		t.Errorf("after deletion there is %q, want what was archived and what was retained", kept)
	}
	_, err = w.Create(t.Context(), in("retain", "dir/retain", retainData))
	w.fails("making a volume where data was retained", err, backends.Invalid, "dir/retain")
	again := w.make(in("archive", "dir/archive", archiveData))
	w.must(w.Delete(t.Context(), again.Handle))
	archived, err := filepath.Glob(w.path("dir", "archived-*"))
	w.must(err)
	if len(archived) != 2 {
		t.Errorf("archived twice there is %q: nothing may be overwritten", archived)
	}
}

// A directory whose name has the maximum length is archived too, with its name cut to fit.
func TestLongNamesAreArchived(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{strings.Repeat("a", 229), strings.Repeat("b", 230), strings.Repeat("ü", 127)} {
		v := w.make(in("one", "dir/"+name, archiveData))
		r := w.recordOf(v)
		w.write("data", "dir", name, "file")
		w.must(w.Delete(t.Context(), v.Handle))
		w.tidy(0, 0)
		archived, err := filepath.Glob(w.path("dir", "archived-*-"+r.Turn, "file"))
		w.must(err)
		if len(archived) != 1 || !utf8.ValidString(archived[0]) {
			t.Errorf("of a name of %d bytes there is the archive %q, want one", len(name), archived)
		}
	}
}

func TestDeletionGoesOnAfterRestart(t *testing.T) {
	w := newWorld(t)
	v := w.make(in("one", "one", deleteData))
	w.write("data", "one", "file")
	// A process that ended after the decisive step.
	h, err := w.parse(volumeKind, v.Handle)
	w.must(err)
	r, err := decodeRecord(readFile(t, w.path(share.At(share.Volumes, h.id+suffix))), "")
	w.must(err)
	w.shut()
	w.must(os.Rename(w.path(share.At(share.Volumes, h.id+suffix)), w.path(share.At(share.Trash, r.key()+suffix))))
	w.open()
	w.fails("deleting what is in the trash", w.Delete(t.Context(), v.Handle), backends.NotFound)
	w.make(specOf("another")) // The first creation on a share wakes its janitor.
	w.tidy(1, 0)
	if _, err := os.Lstat(w.path("one")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory of the deleted volume: %v, want none", err)
	}
}

func readFile(tb testing.TB, path string) []byte {
	tb.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

// Two controllers for one share see each other's volumes, and if both create one name, one wins.
func TestTwoControllers(t *testing.T) {
	w := newWorld(t)
	other := &world{TB: t, root: w.root, mount: w.mount, log: &logBuffer{}, config: &Config{}, data: t.TempDir()}
	other.open()
	defer other.shut()
	for i := range 30 {
		name := fmt.Sprint("volume-", i)
		type outcome struct {
			v   *backends.Volume
			err error
		}
		outcomes := make(chan outcome, 2)
		for _, c := range []*world{w, other} {
			go func() { v, err := c.Create(t.Context(), specOf(name)); outcomes <- outcome{v, err} }()
		}
		made := 0
		for range 2 {
			if o := <-outcomes; o.err == nil {
				made++
			} else if !backends.Is(o.err, backends.Exists) && !backends.Is(o.err, backends.Busy) {
				t.Errorf("one of two controllers: %v", o.err)
			}
		}
		if made == 0 { // Both were in each other's way: the orchestrator retries.
			w.make(specOf(name))
		}
		a, err := w.Find(t.Context(), specOf(name))
		w.must(err)
		b, err := other.Get(t.Context(), a.Handle)
		w.must(err)
		if a.Handle != b.Handle {
			t.Errorf("the controllers see %q and %q", a.Handle, b.Handle)
		}
		if _, err := os.Stat(w.path(name)); err != nil {
			t.Error(err)
		}
		w.ask("deleting", func() error { return other.Delete(t.Context(), a.Handle) })
	}
	w.tidy(0, 0)
}

func TestConfiguredShares(t *testing.T) {
	w := newWorld(t)
	w.config = &Config{Shares: []ShareConfig{{Name: "fast", Server: testServer, Share: testShare}}}
	w.reopen()
	spec := specOf("one")
	spec.Parameters = &Parameters{ShareName: "fast"}
	v := w.make(spec)
	if !strings.HasSuffix(v.Handle, ".@fast") {
		t.Errorf("the handle is %q, want one with the share's name", v.Handle)
	}
	// An address that is too long for a handle is refused with advice.
	long := strings.Repeat("a", 100) + ".test"
	w.must(os.MkdirAll(filepath.Join(filepath.Dir(filepath.Dir(w.root)), long, "export"), 0o755))
	spec.Name, spec.Parameters = "two", &Parameters{Server: long, Share: testShare}
	_, err := w.Create(t.Context(), spec)
	w.fails("a long address", err, backends.Invalid, "shareName")
	spec.Parameters = &Parameters{ShareName: "fast", Server: testServer}
	_, err = w.Create(t.Context(), spec)
	w.fails("a name and an address", err, backends.Invalid, "one or the other")
	w.config = &Config{}
	w.reopen()
	_, err = w.Get(t.Context(), v.Handle)
	w.fails("a share that is no longer configured", err, backends.Unavailable, "fast")
}

func TestEnumerationAfterRestart(t *testing.T) {
	w := newWorld(t)
	for i := range 5 {
		w.make(specOf(fmt.Sprint("v", i)))
	}
	w.reopen()
	if list, _, err := w.List(t.Context(), backends.Page{}); err != nil || len(list) != 5 {
		t.Errorf("after a restart %d volumes are listed, %v; want 5", len(list), err)
	}
}

func TestHealth(t *testing.T) {
	w := newWorld(t)
	spec := in("one", "one", deleteData)
	spec.Capacity.RequiredBytes = 1 << 20
	v := w.make(spec)
	reason := func() string {
		issues, err := w.Health(t.Context(), v.Handle)
		w.must(err)
		if len(issues) == 0 {
			return ""
		}
		return issues[0].Reason
	}
	if r := reason(); r != "" {
		t.Errorf("a new volume is unwell: %s", r)
	}
	w.eventually("measuring the usage", func() bool {
		w.usage.mu.Lock()
		defer w.usage.mu.Unlock()
		for key, u := range w.usage.known {
			if u.measured {
				delete(w.usage.known, key)
				return true
			}
		}
		return false
	})
	w.write(strings.Repeat("x", 2<<20), "one", "large")
	w.eventually("noticing the usage", func() bool { return reason() == "OverRecordedSize" })
	w.must(os.RemoveAll(w.path("one")))
	if r := reason(); r != "DataMissing" {
		t.Errorf("a volume without its directory: %q, want DataMissing", r)
	}
	w.must(w.Delete(t.Context(), v.Handle))
	w.tidy(0, 0)
}

// A tree is deeper than one removal handles at once, on a filesystem that renames as NFS does.
func TestDeepTreesAreRemoved(t *testing.T) {
	w := newWorld(t)
	v := w.make(in("one", "one", deleteData))
	dir, err := os.Open(w.path("one"))
	w.must(err)
	for range 300 {
		w.must(unix.Mkdirat(int(dir.Fd()), "deeper", 0o755))
		fd, err := unix.Openat(int(dir.Fd()), "deeper", unix.O_DIRECTORY, 0)
		w.must(err)
		w.must(dir.Close())
		dir = os.NewFile(uintptr(fd), "deeper")
	}
	w.must(dir.Close())
	w.must(w.Delete(t.Context(), v.Handle))
	w.tidy(0, 0)
}

// A volume that is written to while it is copied has no instant for the copy. The attempt leaves nothing.
func TestSourceInUse(t *testing.T) {
	w := newWorld(t)
	v := w.make(in("one", "one", deleteData))
	for i := range 200 {
		w.write("x", "one", fmt.Sprint("file", i))
	}
	stop := w.writing("one")
	defer stop()
	_, err := w.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "s", Volume: v.Handle})
	w.fails("a snapshot of a volume that is written to", err, backends.InUse, "sourceInUse=copy")
	_, err = w.Clone(t.Context(), in("two", "two", deleteData), v.Handle)
	w.fails("a clone of it", err, backends.InUse)
	w.tidy(1, 0)
	_, err = w.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "s", Volume: v.Handle,
		Parameters: &SnapshotParameters{SourceInUse: copyInUse}})
	w.must(err)
	stop()
	if _, err := w.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "later", Volume: v.Handle}); err != nil {
		t.Errorf("a snapshot once nobody writes: %v", err)
	}
	w.tidy(1, 2)
}

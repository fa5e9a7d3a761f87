package nfs

import (
	"context"
	"errors"
	"os"
	"path"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/export"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// lettingIn is a server that lets this node mount only some paths.
type lettingIn struct {
	export.Mounter
	lets    func(path string) bool
	failure error // for all other paths
}

func (l lettingIn) Open(ctx context.Context, address export.Address) (*export.Root, error) {
	if !l.lets(address.Path) {
		return nil, backends.Errorf(backends.Unavailable, "mounting %s: %w", address, l.failure)
	}
	return l.Mounter.Open(ctx, address)
}

// exporting returns exports for the pipeline to mount, whatever the stand-in for the server.
type exporting struct{ export.Mounter }

func (e exporting) Source(_ context.Context, address export.Address, dir string) (backends.Source, error) {
	return backends.Export{FSType: "nfs4", Source: address.Below(dir)}, nil
}

// planted returns a world with a pod that has a volume with links.
func planted(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.mount = exporting{w.mount}
	w.reopen()
	w.make(in("pvc-1", "mine", deleteData))
	w.write("x", "mine", "plain", "deep", "file")
	w.write("x", "beside", "file")
	for name, target := range map[string]string{"own": "../.stowage", "inOwn": "../.stowage/snapshots", "root": "..",
		"beside": "../beside", "plain/deep/own": "../../../.stowage", "self": "plain"} {
		w.must(os.Symlink(target, w.path("mine", name)))
	}
	w.noticed()
	return w
}

// static returns the node's source of a static volume.
func (w *world) static(at, dir string) (backends.Source, error) {
	w.Helper()
	return w.node.Source(w.Context(), backends.Attachment{Handle: "by-hand", Type: backends.Mount,
		Attributes: map[string]string{"server": testServer, "share": at, "subDir": dir}})
}

// mounts makes a node mount a static volume, as the kernel does it, and prove it.
func (w *world) mounts(at, dir string) error {
	w.Helper()
	source, err := w.static(at, dir)
	if err != nil {
		return err
	}
	return w.proven(source, path.Join(at, dir))
}

// proven runs a source's proof on the mount of a path of the server.
func (w *world) proven(source backends.Source, from string) error {
	w.Helper()
	root, err := w.mount.Open(w.Context(), export.Address{Server: testServer, Path: from})
	w.must(err)
	defer root.Close()
	return source.(backends.Export).Prove(w.Context(), root.Dir)
}

// refuses checks that no node mounts a static volume.
func (w *world) refuses(at, dir string) {
	w.Helper()
	err := w.mounts(at, dir)
	if !backends.Is(err, backends.Unavailable) && !backends.Is(err, backends.Invalid) ||
		!strings.Contains(err.Error(), "symlink") && !strings.Contains(err.Error(), share.HomeName) {
		w.Errorf("share %s, subDir %q: got %v, want a refusal that names the symlink or %s", at, dir, err, share.HomeName)
	}
}

// TestStaticVolumesOverPlantedLinks has a PersistentVolume with a path over a link that a pod has created in its
// volume: the kernel follows it when it mounts. A node notices that whether it knows the share or no share at all.
func TestStaticVolumesOverPlantedLinks(t *testing.T) {
	named := ShareConfig{Name: "one", Server: testServer, Share: testShare}
	for name, open := range map[string]func(w *world){
		"known by its volume": func(*world) {},
		"configured":          func(w *world) { w.config = &Config{Shares: []ShareConfig{named}} },
		"the only one":        func(w *world) { w.config = &Config{OnlyShares: true, Shares: []ShareConfig{named}} },
		"unknown":             func(w *world) { w.data = t.TempDir() },
	} {
		t.Run(name, func(t *testing.T) {
			w := planted(t)
			open(w)
			w.reopen()
			for _, path := range []string{"own", "own/volumes", "own/snapshots", "inOwn", "root", "root/beside", "beside",
				"plain/deep/own", "plain/deep/own/trash", "self/deep"} {
				w.refuses(testShare+"/mine/"+path, "")
				w.refuses(testShare+"/mine", path)
				if above, last, nested := strings.Cut(path, "/"); nested {
					w.refuses(testShare+"/mine/"+above, last)
				}
			}
			for _, at := range [][2]string{{"/mine/plain", ""}, {"/mine/plain/deep", ""}, {"/mine", "plain/deep"},
				{"", "beside"}} {
				if err := w.mounts(testShare+at[0], at[1]); err != nil {
					t.Errorf("%v: %v", at, err)
				}
			}
		})
	}
}

// TestLinkToRootOfNewShare has a link to the root of a share that has no volume yet: the driver's directory would later
// appear in its mount.
func TestLinkToRootOfNewShare(t *testing.T) {
	w := newWorld(t)
	w.mount = exporting{w.mount}
	w.config = &Config{Shares: []ShareConfig{{Name: "one", Server: testServer, Share: testShare}}}
	w.reopen()
	w.write("x", "mine", "plain", "file")
	w.must(os.Symlink("..", w.path("mine", "root")))
	w.noticed()
	w.refuses(testShare+"/mine/root", "")
	w.must(w.mounts(testShare+"/mine/plain", ""))
}

// TestDeepStaticVolumeIsRefused has a path of which each directory would have to be mounted, to look for a share there.
func TestDeepStaticVolumeIsRefused(t *testing.T) {
	w := newWorld(t)
	_, err := w.static(strings.Repeat("/d", deepest), "d")
	w.fails("a deep path", err, backends.Invalid, "33 directories deep")
	if mounted := w.pool.Mounted(); len(mounted) != 0 {
		t.Errorf("mounted for it: %v", mounted)
	}
}

// TestOwnDirectoryIsRefused has a node that may not mount the directories above the links: there the directory itself
// shows what it is. A server that does not answer is another case.
func TestOwnDirectoryIsRefused(t *testing.T) {
	for failure, want := range map[error]backends.Kind{unix.EACCES: backends.Invalid, unix.ENOENT: backends.Invalid,
		unix.ETIMEDOUT: backends.Unavailable} {
		w := planted(t)
		w.data = t.TempDir()
		w.mount = lettingIn{w.mount, func(path string) bool { return strings.HasPrefix(path, testShare+"/mine/") }, failure}
		w.reopen()
		for _, path := range []string{"own", "own/volumes", "own/snapshots"} {
			_, err := w.static(testShare+"/mine/"+path, "")
			w.fails(path+" with "+failure.Error(), err, want)
		}
		_, err := w.static(testShare+"/mine/plain", "deep/own")
		w.fails("a link below, with "+failure.Error(), err, backends.Unavailable)
		if _, err := w.static(testShare+"/mine/plain", "deep"); (err == nil) != (want == backends.Invalid) {
			t.Errorf("what is beside, with %v: got %v", failure, err)
		}
	}
}

// in returns the world for a subtest.
func (w *world) in(t *testing.T) *world {
	within := *w
	within.TB = t
	return &within
}

// TestMountedIsProven swaps a directory for a link after the node has looked at it: the kernel then mounts something
// else than the volume.
func TestMountedIsProven(t *testing.T) {
	w := newWorld(t)
	w.mount = exporting{w.mount}
	w.reopen()
	v := w.make(in("pvc-1", "mine/volume", deleteData))
	w.write("x", "mine", "plain", "file")
	for name, row := range map[string]struct {
		dir string
		ask func() (backends.Source, error)
	}{
		"made by the driver": {"mine/volume", func() (backends.Source, error) {
			return w.node.Source(t.Context(), backends.Attachment{Handle: v.Handle, Type: backends.Mount})
		}},
		"static by its share": {"mine/plain", func() (backends.Source, error) {
			return w.static(testShare+"/mine/plain", "")
		}},
		"static by its subDir": {"mine/plain", func() (backends.Source, error) {
			return w.static(testShare, "mine/plain")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := w.in(t)
			source, err := row.ask()
			w.must(err)
			proves := func() error { return w.proven(source, path.Join(testShare, row.dir)) }
			w.must(proves())
			place, away := w.path(row.dir), w.path("mine", "away")
			w.must(os.Rename(place, away))
			for _, target := range []string{"../" + share.HomeName, "away"} { // The second is the same directory, by a link.
				w.must(os.Symlink(target, place))
				w.noticed()
				w.fails("a link to "+target, proves(), backends.Unavailable)
				w.must(os.Remove(place))
			}
			w.must(os.Mkdir(place, 0o755))
			w.noticed()
			w.must(proves()) // Another directory of that name is the volume by now.
			w.must(errors.Join(os.Remove(place), os.Rename(away, place)))
			w.noticed()
			w.must(proves())
		})
	}
}

// TestRootOfHandleIsProven has a pod that writes a share's records in its volume, and a PersistentVolume with a handle
// for that share. After the node's look, the root is swapped for a link. Then the driver's own directory is mounted,
// and the new mount of the share for the proof leads there too.
func TestRootOfHandleIsProven(t *testing.T) {
	w := newWorld(t)
	w.mount = exporting{w.mount}
	w.reopen()
	v := w.make(in("pvc-1", "mine", deleteData))
	hd, err := w.parse(volumeKind, v.Handle)
	w.must(err)
	w.must(os.MkdirAll(w.path("mine", "d", "volumes"), 0o755))
	w.must(os.CopyFS(w.path("mine", "d", share.HomeName), os.DirFS(w.path(share.HomeName))))
	hd.address.Path = testShare + "/mine/d"
	forged, err := hd.encode()
	w.must(err)
	path := w.path("mine", "d", share.HomeName, share.Volumes, hd.id+suffix)
	data, err := os.ReadFile(path)
	w.must(err)
	r, err := decodeRecord(data, path)
	w.must(err)
	r.Handle, r.SubDir = forged, "volumes"
	data, err = r.encode()
	w.must(err)
	w.must(os.WriteFile(path, data, 0o600))
	w.noticed()

	source, err := w.node.Source(t.Context(), backends.Attachment{Handle: forged, Type: backends.Mount})
	w.must(err)
	w.must(w.proven(source, testShare+"/mine/d/volumes"))
	for _, target := range []string{"../" + share.HomeName, ".."} {
		w.must(os.RemoveAll(w.path("mine", "d")))
		w.must(os.MkdirAll(w.path("volumes"), 0o755))
		w.must(os.Symlink(target, w.path("mine", "d")))
		w.noticed()
		w.pool.Drop(hd.address) // As when its handles are stale.
		w.fails("a link to "+target, w.proven(source, testShare+"/mine/d/volumes"), backends.Unavailable)
	}
}

// TestRecordsAreNotMounted makes records appear in a directory after the node's look.
func TestRecordsAreNotMounted(t *testing.T) {
	w := planted(t)
	source, err := w.static(testShare+"/mine/plain", "")
	w.must(err)
	w.must(w.proven(source, testShare+"/mine/plain"))
	w.fails("a share's root", w.proven(source, testShare), backends.Unavailable, share.HomeName)
	w.fails("the records", w.proven(source, testShare+"/"+share.HomeName), backends.Unavailable, share.HomeName)
}

// TestKnownShareThatMayNotBeMounted has a node that may mount a directory of a configured share, but not the share.
func TestKnownShareThatMayNotBeMounted(t *testing.T) {
	w := planted(t)
	w.config = &Config{Shares: []ShareConfig{{Name: "one", Server: testServer, Share: testShare}}}
	below := func(path string) bool { return strings.HasPrefix(path, testShare+"/mine/") }
	w.mount = lettingIn{w.mount, below, unix.EACCES}
	w.reopen()
	w.must(w.mounts(testShare+"/mine/plain", "deep"))
	w.must(w.mounts(testShare+"/mine/plain/deep", ""))
}

// TestDirectoriesAboveAreNotKept looks at each directory above a static volume, and leaves none mounted that is no
// share.
func TestDirectoriesAboveAreNotKept(t *testing.T) {
	w := planted(t)
	w.must(w.mounts(testShare+"/mine/plain", ""))
	for _, address := range w.pool.Mounted() {
		if address.Path != testShare && address.Path != testShare+"/mine/plain" {
			t.Errorf("%s is mounted still", address)
		}
	}
}

// TestOtherDirectoryIsNotProven has a path that leads to the right directory before and after the look at the mount,
// but another directory is mounted.
func TestOtherDirectoryIsNotProven(t *testing.T) {
	w := planted(t)
	source, err := w.static(testShare+"/mine/plain", "")
	w.must(err)
	for _, path := range []string{"/mine/own", "/mine/beside", "/mine", "/mine/plain/deep"} {
		w.fails(path, w.proven(source, testShare+path), backends.Unavailable)
	}
}

// mountTmpfs mounts a filesystem on a directory of the share.
func (w *world) mountTmpfs(elements ...string) {
	w.Helper()
	dir := w.path(elements...)
	w.must(os.MkdirAll(dir, 0o755))
	w.must(unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m,inode64"))
	w.Cleanup(func() { w.must(unix.Unmount(dir, unix.MNT_DETACH)) })
}

// TestOtherFilesystemIsNotProven has a directory with the same inode number on another filesystem, as an attacker who
// creates directories there can achieve.
func TestOtherFilesystemIsNotProven(t *testing.T) {
	w := newWorld(t)
	w.mountTmpfs("one")
	<-time.After(20 * time.Millisecond) // Stimulus: the second is created later, by the kernel's clock.
	w.mountTmpfs("other")
	one, err := os.Open(w.path("one"))
	w.must(err)
	defer one.Close()
	other, err := os.Open(w.path("other"))
	w.must(err)
	defer other.Close()
	these, err := glimpseOf(one)
	w.must(err)
	those, err := glimpseOf(other)
	w.must(err)
	if these.inode != those.inode {
		t.Fatalf("the directories have the numbers %d and %d, and are to be alike", these.inode, those.inode)
	}
	at := func(path string) spot {
		return spot{visit: w.visitStatic(export.Address{Server: testServer, Path: testShare + path}, ".")}
	}
	w.must(w.prove(t.Context(), at("/one"), one))
	w.fails("the other", w.prove(t.Context(), at("/one"), other), backends.Unavailable)
	w.fails("the one", w.prove(t.Context(), at("/other"), one), backends.Unavailable)
}

// TestStaticVolumesOnAnotherFilesystem has a server that shows a filesystem below the share: its directories can be
// static volumes, and links there lead nowhere either.
func TestStaticVolumesOnAnotherFilesystem(t *testing.T) {
	w := newWorld(t)
	w.mount = exporting{w.mount}
	w.reopen()
	w.make(specOf("one"))
	w.mountTmpfs("disk")
	w.write("x", "disk", "data", "deep", "file")
	w.must(os.Symlink("../../"+share.HomeName, w.path("disk", "data", "own")))
	for _, at := range [][2]string{{"/disk", ""}, {"/disk", "data"}, {"/disk/data", ""}, {"/disk/data", "deep"},
		{"/disk/data/deep", ""}} {
		if err := w.mounts(testShare+at[0], at[1]); err != nil {
			t.Errorf("%v: %v", at, err)
		}
	}
	for _, at := range [][2]string{{"/disk/data/own", ""}, {"/disk/data", "own"}, {"/disk/data/own/volumes", ""}} {
		w.refuses(testShare+at[0], at[1])
	}
}

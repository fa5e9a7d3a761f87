package nfs

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/export"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
	"github.com/stowage-csi/stowage/pkg/safepath"
)

// canaries creates files that the driver must never touch: on the share beside the volumes, on the server beside the
// share, and on another server. The returned check compares them.
func (w *world) canaries() (check func()) {
	w.Helper()
	w.write("canary", "canary", "file")
	w.write("canary", "other", "tenant", "file")
	beside := filepath.Dir(w.root)
	for _, dir := range []string{filepath.Join(beside, "secret"),
		filepath.Join(filepath.Dir(beside), "other.test", "export")} {
		w.must(os.MkdirAll(dir, 0o755))
		w.must(os.WriteFile(filepath.Join(dir, "file"), []byte("canary"), 0o644))
	}
	before := photograph(w, filepath.Dir(beside))
	return func() {
		w.Helper()
		after := photograph(w, filepath.Dir(beside))
		if !slices.Equal(before, after) {
			w.Errorf("what is none of the driver's has changed:\n%s\nwas\n%s", strings.Join(after, "\n"),
				strings.Join(before, "\n"))
		}
	}
}

// hostilePaths returns directories that no class may name.
func hostilePaths() []string {
	return []string{
		"..", "../secret", "../../other.test/export", "a/../../secret", "a/../canary", "/secret", "/etc", "a//b", "./a",
		"a/.", "a/", "a\x00b", "a\nb",
		"a,b", "a,addr=6.6.6.6", "a b", `a\b`, ".stowage", ".stowage/volumes", ".stowage/trash/x", "x/.stowage", ".STOWAGE/x",
		".stowage2",
		"${pv.metadata.name}/../canary", "${pv.metadata.name}/../../secret", "${unknown}", "${unknown",
		"${${pvc.metadata.name}}",
		strings.Repeat("a/", 3000) + "a", strings.Repeat("n", 300),
	}
}

func TestHostileSubDir(t *testing.T) {
	w := newWorld(t)
	check := w.canaries()
	for _, path := range hostilePaths() {
		_, err := w.Create(t.Context(), in("pvc-1", path, deleteData))
		w.fails("subDir "+path[:min(40, len(path))], err, backends.Invalid)
	}
	for _, value := range []string{"..", "../secret", "a/b", "/etc", ".stowage", ".", "a\x00"} {
		for _, template := range []string{"${pvc.metadata.name}", "${pvc.metadata.namespace}/x", "x/${pv.metadata.name}"} {
			spec := in("pvc-1", template, deleteData)
			spec.Claim = backends.Claim{Namespace: value, Name: value, Volume: value}
			_, err := w.Create(t.Context(), spec)
			w.fails("template "+template+" with "+value, err, backends.Invalid)
		}
	}
	_, err := w.Create(t.Context(), backends.Spec{Name: "x",
		Parameters: &Parameters{Server: testServer, Share: testShare, SubDir: "${pvc.metadata.name}"}})
	w.fails("a template whose value is not known", err, backends.Invalid, "--extra-create-metadata")
	check()
}

func TestHostileAddresses(t *testing.T) {
	w := newWorld(t)
	check := w.canaries()
	for _, path := range []string{"/export/../secret", "export", "/export//x", "/export,sec=none", "/export\nx",
		"/export\x00", "/a b", "", ".", "/./x"} {
		spec := specOf("x")
		spec.Parameters = &Parameters{Server: testServer, Share: path}
		_, err := w.Create(t.Context(), spec)
		w.fails("share "+path, err, backends.Invalid)
	}
	for _, server := range []string{"../other.test", "nfs.test,soft", "nfs.test:/x", "a b", "-o", ".", "..",
		"nfs.test\x00", "nfs.test/secret", strings.Repeat("a", 300), "::1:x", "@name"} {
		spec := specOf("x")
		spec.Parameters = &Parameters{Server: server, Share: testShare}
		_, err := w.Create(t.Context(), spec)
		w.fails("server "+server[:min(40, len(server))], err, backends.Invalid)
	}
	check()
}

// hostileHandles returns handles that authors of PersistentVolumes have forged for other drivers, and variations of a
// real handle.
func hostileHandles(known string) []string {
	code, where, _ := strings.Cut(strings.TrimPrefix(known, volumeKind.prefix()), ".")
	return []string{
		"nfs.test#export#../secret#pvc-1#", "nfs.test#/export#../../secret##delete", "nfs.test/export/../secret",
		"../../../secret", "nfs.test:/export",
		volumeKind.prefix(), volumeKind.prefix() + ".", volumeKind.prefix() + "." + where, volumeKind.prefix() + code,
		volumeKind.prefix() + code + ".",
		volumeKind.prefix() + code + ".other.test:/export", volumeKind.prefix() + code + ".nfs.test:/secret",
		volumeKind.prefix() + code + ".nfs.test:/export/../secret",
		volumeKind.prefix() + code + ".@share", known + ",addr=6.6.6.6", known + "/..",
		snapshotKind.prefix() + code + "." + where, "x" + known,
		volumeKind.prefix() + code[:9] + "\r" + code[9:] + "." + where, volumeKind.prefix() + code + "\n." + where,
	}
}

func TestHostileHandles(t *testing.T) {
	w := newWorld(t)
	check := w.canaries()
	v := w.make(in("pvc-1", "mine", deleteData))
	ctx := t.Context()
	for _, handle := range hostileHandles(v.Handle) {
		w.fails("Delete "+handle, w.Delete(ctx, handle), backends.NotFound)
		w.fails("DeleteSnapshot "+handle, w.DeleteSnapshot(ctx, handle), backends.NotFound)
		_, err := w.Get(ctx, handle)
		w.fails("Get "+handle, err, backends.NotFound)
		_, err = w.Clone(ctx, specOf("clone"), handle)
		w.fails("Clone "+handle, err, backends.NotFound)
		_, err = w.Restore(ctx, specOf("clone"), handle)
		w.fails("Restore "+handle, err, backends.NotFound)
		// Attributes are also under the control of the PersistentVolume's author.
		_, err = w.node.Source(ctx, backends.Attachment{Handle: handle, Attributes: map[string]string{"subDir": "../secret"}})
		w.fails("Source "+handle, err, backends.NotFound)
	}
	w.must(w.Delete(ctx, v.Handle))
	check()
}

// A well-formed handle with the right share but a guessed ID reaches nothing.
func TestForgedHandle(t *testing.T) {
	w := newWorld(t)
	check := w.canaries()
	v := w.make(in("pvc-1", "mine", deleteData))
	genuine, err := w.parse(volumeKind, v.Handle)
	w.must(err)
	forge := func(change func(*handle)) string {
		h := genuine
		change(&h)
		text, err := h.encode()
		w.must(err)
		return text
	}
	guessed := forge(func(h *handle) { h.id = strings.Repeat("0", 32) })
	w.fails("a guessed ID", w.Delete(t.Context(), guessed), backends.NotFound)
	elsewhere := forge(func(h *handle) { h.address.Path = "/secret" })
	w.fails("another share", w.Delete(t.Context(), elsewhere), backends.Unavailable, share.HomeName)
	other := forge(func(h *handle) { h.home[0]++ })
	w.fails("another identity", w.Delete(t.Context(), other), backends.Unavailable, "another share")
	if _, err := w.Get(t.Context(), v.Handle); err != nil {
		t.Errorf("the true handle: %v", err)
	}
	if strings.Contains(v.Handle, "mine") || strings.Contains(v.Handle, "pvc-1") {
		t.Errorf("the handle %q tells the name or the directory", v.Handle)
	}
	w.must(w.Delete(t.Context(), v.Handle))
	check()
}

// The PersistentVolume's attributes are ignored for a volume of the driver's own.
func TestAttributesOfOwnVolumesDoNotCount(t *testing.T) {
	w := newWorld(t)
	w.canaries()
	v := w.make(in("pvc-1", "mine", deleteData))
	source, err := w.node.Source(t.Context(), backends.Attachment{
		Handle: v.Handle, Attributes: map[string]string{"server": "other.test", "share": "/export", "subDir": "other/tenant"},
	})
	w.must(err)
	if want := w.path("mine"); placeOf(source) != want {
		t.Errorf("the source is %v, want %s", source, want)
	}
}

// placeOf returns the directory of this machine that is the source, or that the kernel's server exports.
func placeOf(source backends.Source) string {
	switch s := source.(type) {
	case backends.Directory:
		return s.Path
	case backends.Export:
		_, path, _ := strings.Cut(s.Source, ":")
		return path
	default:
		return ""
	}
}

func TestStaticVolumes(t *testing.T) {
	w := newWorld(t)
	check := w.canaries()
	static := func(handle string, attributes map[string]string) (backends.Source, error) {
		return w.node.Source(t.Context(), backends.Attachment{Handle: handle, Type: backends.Mount, Attributes: attributes})
	}
	for dir, want := range map[string]string{"": w.root, "canary": w.path("canary"),
		"other/tenant": w.path("other", "tenant"), "/canary/": w.path("canary")} {
		source, err := static("by-hand", map[string]string{"server": testServer, "share": testShare, "subDir": dir})
		if err != nil || placeOf(source) != want {
			t.Errorf("static volume %q: got %v, %v; want %s", dir, source, err, want)
		}
	}
	for _, dir := range []string{"..", "../secret", "a/../..", ".stowage", ".stowage/volumes", "a//b", "a\x00",
		"canary,soft"} {
		_, err := static("by-hand", map[string]string{"server": testServer, "share": testShare, "subDir": dir})
		w.fails("static volume "+dir, err, backends.Invalid)
	}
	_, err := static("by-hand", map[string]string{"server": testServer, "share": "/export/.stowage/volumes"})
	w.fails("the driver's own directory", err, backends.Invalid)
	_, err = static("by-hand", map[string]string{"server": testServer, "share": testShare, "subdri": "x"})
	w.fails("a typo", err, backends.Invalid, "subdri")
	_, err = static("by-hand", map[string]string{"server": testServer, "share": testShare, "subDir": "not-there"})
	w.fails("a directory that is not there", err, backends.Unavailable)
	w.must(os.Symlink("../secret", w.path("link")))
	w.noticed()
	_, err = static("by-hand", map[string]string{"server": testServer, "share": testShare, "subDir": "link"})
	w.fails("a symlink", err, backends.Unavailable, "symlink")
	w.must(os.Remove(w.path("link")))
	w.fails("Delete of a static volume", w.Delete(t.Context(), "by-hand"), backends.NotFound)
	check()
}

// An existing directory is never taken over, and one volume is never inside another.
func TestNothingIsAdopted(t *testing.T) {
	w := newWorld(t)
	check := w.canaries()
	_, err := w.Create(t.Context(), in("one", "canary", deleteData))
	w.fails("a directory of somebody else", err, backends.Invalid, "canary", "did not make")
	w.tidy(0, 0)
	w.must(os.Mkdir(w.path("empty"), 0o755))
	_, err = w.Create(t.Context(), in("one", "empty", deleteData))
	w.fails("an empty directory of somebody else", err, backends.Invalid)
	w.must(os.Remove(w.path("empty")))
	first := w.make(in("one", "mine/inner", deleteData))
	_, err = w.Create(t.Context(), in("two", "mine/inner", deleteData))
	w.fails("another volume's directory", err, backends.Invalid, `"one"`)
	_, err = w.Create(t.Context(), in("two", "mine/inner/deeper", deleteData))
	w.fails("a directory inside another volume", err, backends.Invalid)
	_, err = w.Create(t.Context(), in("two", "mine", deleteData))
	w.fails("a directory around another volume", err, backends.Invalid)
	w.tidy(1, 0)
	w.must(w.Delete(t.Context(), first.Handle))
	w.tidy(0, 0)
	w.must(os.Remove(w.path("mine"))) // Directories above volumes stay; this one must be empty.
	check()
}

// A volume is never on another share below its own: it could be inside a volume there.
func TestNoVolumeIsOnAShareBelow(t *testing.T) {
	w := newWorld(t)
	w.must(os.Mkdir(w.path("below"), 0o755))
	w.noticed()
	inner := in("inner", "x", deleteData)
	inner.Parameters.(*Parameters).Share = testShare + "/below"
	w.make(inner)
	w.noticed()
	for _, dir := range []string{"below/y", "below/x/y", "below/ns/y"} {
		_, err := w.Create(t.Context(), in("outer", dir, deleteData))
		w.fails("a volume in "+dir, err, backends.Invalid, "another share", testShare)
		if _, err := os.Lstat(w.path(dir)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v, want that it is not there", dir, err)
		}
	}
	w.make(in("outer", "beside/y", deleteData))
}

// Symlinks that a pod plants in its volume, and that others plant above it, lead nowhere.
func TestPlantedSymlinks(t *testing.T) {
	w := newWorld(t)
	check := w.canaries()
	v := w.make(in("pvc-1", "mine", deleteData))
	for name, target := range map[string]string{
		"absolute": w.path("canary"), "up": "../canary", "home": "../.stowage", "file": "../canary/file", "root": "/",
		"dangling": "nowhere",
	} {
		w.must(os.Symlink(target, w.path("mine", name)))
	}
	s, err := w.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "snap", Volume: v.Handle})
	w.must(err)
	spec := in("restored", "restored", deleteData)
	restored, err := w.Restore(t.Context(), spec, s.Handle)
	w.must(err)
	if target, err := os.Readlink(w.path("restored", "up")); err != nil || target != "../canary" {
		t.Errorf("a restored symlink is %q, %v", target, err)
	}
	w.must(w.DeleteSnapshot(t.Context(), s.Handle))
	w.must(w.Delete(t.Context(), v.Handle))
	w.must(w.Delete(t.Context(), restored.Handle))
	w.tidy(0, 0)

	w.must(os.Symlink("../secret", w.path("above")))
	w.noticed()
	_, err = w.Create(t.Context(), in("two", "above/two", deleteData))
	w.fails("a directory above that is a symlink", err, backends.Invalid)
	w.must(os.Remove(w.path("above")))

	v = w.make(in("three", "three", deleteData))
	w.must(os.Remove(w.path("three")))
	w.must(os.Symlink("canary", w.path("three")))
	w.noticed()
	_, err = w.node.Source(t.Context(), backends.Attachment{Handle: v.Handle})
	w.fails("a volume that was replaced by a symlink", err, backends.Unavailable)
	_, err = w.CreateSnapshot(t.Context(), backends.SnapshotSpec{Name: "of a symlink", Volume: v.Handle})
	w.fails("a snapshot of it", err, backends.Unavailable)
	w.must(w.Delete(t.Context(), v.Handle))
	w.must(os.Remove(w.path("three")))
	check()
}

func TestHostileMountOptions(t *testing.T) {
	w := newWorld(t)
	v := w.make(in("pvc-1", "mine", deleteData))
	ask := func(options ...string) error {
		_, err := w.node.Source(t.Context(), backends.Attachment{Handle: v.Handle, MountOptions: options})
		return err
	}
	for _, option := range []string{
		"addr=6.6.6.6", "clientaddr=6.6.6.6", "mountaddr=6.6.6.6", "mounthost=evil", "port=1", "mountport=1",
		"soft,addr=6.6.6.6", "bind", "remount",
		"x-systemd.automount", "source=evil:/", "minorversion=9", "vers=5", "vers=4.2,addr=6.6.6.6", "v9", "fscontext",
		"suid_dumpable", "",
	} {
		if option == "fscontext" { // One of the pipeline's own options; package mount checks its form.
			continue
		}
		w.fails("mount option "+option, ask(option), backends.Invalid)
	}
	w.must(ask("hard", "timeo=600", "nconnect=4", "nfsvers=4.1", "noatime", "ro", "sec=krb5p"))
	w.fails("two versions", ask("vers=4.1", "nfsvers=4.2"), backends.Invalid)
}

func FuzzHandle(f *testing.F) {
	e := &engine{named: map[string]export.Address{"named": {Server: "s", Path: "/p"}}}
	for _, h := range []handle{
		{kind: volumeKind, address: export.Address{Server: "nfs.test", Path: "/export", Version: "4.1"},
			id: strings.Repeat("ab", 16)},
		{kind: volumeKind, address: export.Address{Server: "::1", Path: "/"}, id: strings.Repeat("00", 16)},
		{kind: volumeKind, share: "named", id: strings.Repeat("ff", 16)},
	} {
		text, err := h.encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
		for _, hostile := range hostileHandles(text) {
			f.Add(hostile)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		h, err := e.parse(volumeKind, text)
		if err != nil {
			if !backends.Is(err, backends.NotFound) && !backends.Is(err, backends.Unavailable) {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		if again, err := h.encode(); err != nil || again != text {
			t.Fatalf("%q is read as %+v, which is written as %q, %v", text, h, again, err)
		}
	})
}

func FuzzSubDir(f *testing.F) {
	for _, path := range append(hostilePaths(), "${pvc.metadata.namespace}/${pvc.metadata.name}", "plain") {
		f.Add(path, "team", "claim", "pvc-1")
		f.Add(path, "..", "a/b", "/")
	}
	f.Fuzz(func(t *testing.T, template, namespace, name, volume string) {
		path, err := subDirOf(template, backends.Spec{Name: name,
			Claim: backends.Claim{Namespace: namespace, Name: name, Volume: volume}}, "id")
		if err != nil {
			if !backends.Is(err, backends.Invalid) {
				t.Fatal(err)
			}
			return
		}
		if !filepath.IsLocal(path) || filepath.Clean(path) != path || safepath.Within(share.HomeName, path) ||
			strings.ContainsAny(path, ",\x00\n") {
			t.Fatalf("%q, %q, %q, %q become %q", template, namespace, name, volume, path)
		}
	})
}

func FuzzRecord(f *testing.F) {
	f.Add([]byte(`{"version":1,"kind":"volume","id":"00000000000000000000000000000000","turn":"0000000000000000","sizeBytes":1,"onDelete":"delete","subDir":"../x"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := decodeRecord(data, "here")
		if err == nil && r.Kind == volumeKind && (!filepath.IsLocal(r.SubDir) || safepath.Within(share.HomeName, r.SubDir)) {
			t.Fatalf("a record leads to %q", r.SubDir)
		}
	})
}

package nfs

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/export"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// TestOnlyConfiguredShares uses a share that is not configured: in a handle, which the author of a PersistentVolume can
// forge, in a static volume, and in a class. Its server is not called.
func TestOnlyConfiguredShares(t *testing.T) {
	w := newWorld(t)
	v := w.make(specOf("there before"))
	w.config = &Config{OnlyShares: true, Shares: []ShareConfig{{Name: "other", Server: testServer, Share: "/other"}}}
	w.reopen()
	if all := w.known.sorted(); len(all) != 1 || all[0].Name != "other" {
		t.Errorf("%v are looked after, want the share of the configuration alone", all)
	}
	const says = "onlyShares"
	_, err := w.Get(t.Context(), v.Handle)
	w.fails("Get", err, backends.Denied, says, testShare)
	w.fails("Delete", w.Delete(t.Context(), v.Handle), backends.Denied, says)
	_, err = w.node.Source(t.Context(), backends.Attachment{Handle: v.Handle})
	w.fails("Source", err, backends.Denied, says)
	_, err = w.Create(t.Context(), specOf("new"))
	w.fails("Create", err, backends.Denied, says)
	for _, path := range []string{testShare, "/othermost", "/"} {
		_, err = w.node.Source(t.Context(), backends.Attachment{Handle: "by-hand",
			Attributes: map[string]string{"server": testServer, "share": path}})
		w.fails("the static volume "+path, err, backends.Denied, says)
	}
	if asked := w.pool.Mounted(); len(asked) != 0 {
		t.Errorf("%v were mounted for what was refused", asked)
	}
	w.config.Shares = append(w.config.Shares, ShareConfig{Name: "this", Server: testServer, Share: testShare})
	w.reopen()
	_, err = w.Get(t.Context(), v.Handle)
	w.must(err)
	w.make(specOf("new"))
	w.write("x", "mine", "file")
	for _, attributes := range []map[string]string{{"share": testShare, "subDir": "mine"}} {
		attributes["server"] = testServer
		_, err = w.node.Source(t.Context(), backends.Attachment{Handle: "by-hand", Attributes: attributes})
		w.must(err)
	}
}

// TestBarredSharesAreKept has a share that one configuration refuses, and the next one cleans up again.
func TestBarredSharesAreKept(t *testing.T) {
	w := newWorld(t)
	v := w.make(specOf("there before"))
	p := w.known.sorted()[0]
	w.config = &Config{OnlyShares: true, Shares: []ShareConfig{{Name: "other", Server: testServer, Share: "/other"}}}
	w.reopen()
	w.known.add(place{export.Address{Server: testServer, Path: "/third"}, ""}, homeID{1})
	w.config = &Config{}
	w.reopen()
	if !w.known.has(p) || !w.known.used(p) {
		t.Errorf("%v is forgotten, which has a volume", p)
	}
	_, err := w.Get(t.Context(), v.Handle)
	w.must(err)
}

// TestSharesBelow compares a static volume's share with those of the configuration.
func TestSharesBelow(t *testing.T) {
	root := export.Address{Server: "a", Path: "/export"}
	for path, want := range map[string]bool{"/export": true, "/export/x": true, "/exports": false, "/": false,
		"/expor": false} {
		if have := within(root, export.Address{Server: "a", Path: path}); have != want {
			t.Errorf("%s is within %s: %t, want %t", path, root.Path, have, want)
		}
	}
	if within(root, export.Address{Server: "b", Path: "/export"}) {
		t.Error("another server's share is within")
	}
	if !within(export.Address{Server: "a", Path: "/"}, root) {
		t.Error("nothing is within /")
	}
}

// TestStaticRootIsRefused mounts a directory that holds the driver's own directory: a pod could write its own records
// there.
func TestStaticRootIsRefused(t *testing.T) {
	w := newWorld(t)
	static := func(share, dir string) error {
		_, err := w.node.Source(t.Context(), backends.Attachment{Handle: "by-hand",
			Attributes: map[string]string{"server": testServer, "share": share, "subDir": dir}})
		return err
	}
	w.write("x", "nested", share.HomeName, "id")
	w.must(static(testShare, ""))
	w.make(specOf("one"))
	w.fails("the share's root", static(testShare, ""), backends.Invalid, share.HomeName, "subDir")
	w.fails("the root of a share within the share", static(testShare, "nested"), backends.Invalid, share.HomeName)
	w.fails("the same by its own path", static(testShare+"/nested", ""), backends.Invalid, share.HomeName)
	w.write("x", "mine", "file")
	w.must(static(testShare, "mine"))
}

// TestStaticRootOfKnownShareIsRefused mounts the future directory of the driver's records, or one above it: a pod would
// find them there later, and could write its own.
func TestStaticRootOfKnownShareIsRefused(t *testing.T) {
	w := newWorld(t)
	w.write("x", "deep", "share", "file")
	w.write("x", "deep", "other", "file")
	w.write("x", "used", "share", "file")
	w.must(os.Symlink(testServer, filepath.Join(filepath.Dir(filepath.Dir(w.root)), "alias.test")))
	w.config = &Config{Shares: []ShareConfig{{Name: "deep", Server: testServer, Share: testShare + "/deep/share"}}}
	w.reopen()
	static := func(server, share, dir string) error {
		_, err := w.node.Source(t.Context(), backends.Attachment{Handle: "by-hand",
			Attributes: map[string]string{"server": server, "share": share, "subDir": dir}})
		return err
	}
	for _, server := range []string{testServer, "alias.test"} {
		w.fails("the root", static(server, testShare+"/deep/share", ""), backends.Invalid, "subDir", "root of the share")
		w.fails("the root by subDir", static(server, testShare, "deep/share"), backends.Invalid, "subDir")
		w.fails("what holds it", static(server, testShare, "deep"), backends.Invalid, "subDir")
		w.fails("what holds that", static(server, testShare, ""), backends.Invalid, "subDir")
		w.fails("all of the server", static(server, "/", ""), backends.Invalid, "subDir")
	}
	w.write("x", "deep", "share", "mine", "file")
	w.must(static(testServer, testShare+"/deep/share", "mine"))
	w.must(static(testServer, testShare, "deep/other"))
	w.must(static(testServer, testShare, "used"))
	spec := specOf("one") // A share that only a class names is known once it has a volume.
	spec.Parameters = &Parameters{Server: testServer, Share: testShare + "/used/share"}
	w.make(spec)
	w.fails("what holds a share of a class", static(testServer, testShare, "used"), backends.Invalid, "subDir")
}

// TestStaticRootByAnotherPath uses names of the server and its export that are not known: the records show the share.
func TestStaticRootByAnotherPath(t *testing.T) {
	w := newWorld(t)
	servers := filepath.Dir(filepath.Dir(w.root))
	w.must(os.MkdirAll(filepath.Join(servers, "other.test", "pseudo", "free"), 0o755))
	w.make(specOf("one"))
	w.must(os.Rename(w.root, filepath.Join(servers, "other.test", "pseudo", filepath.Base(w.root))))
	w.must(os.MkdirAll(w.root, 0o755))
	static := func(dir string) error {
		_, err := w.node.Source(t.Context(), backends.Attachment{Handle: "by-hand",
			Attributes: map[string]string{"server": "other.test", "share": "/pseudo", "subDir": dir}})
		return err
	}
	w.fails("what holds the share", static(""), backends.Invalid, share.HomeName, "subDir")
	w.must(static("free"))
}

// TestFailedCreationAddsNoShare requests a volume that cannot be created: that does not make the share listed.
func TestFailedCreationAddsNoShare(t *testing.T) {
	w := newWorld(t)
	spec := specOf("one")
	spec.Access.Types = []backends.AccessType{backends.Block}
	_, err := w.Create(t.Context(), spec)
	w.fails("a raw volume", err, backends.Invalid)
	if places := w.known.sorted(); len(places) != 0 {
		t.Errorf("%v are enumerated though nothing was made", places)
	}
	w.make(specOf("one"))
	if len(w.known.sorted()) != 1 {
		t.Error("the share of a volume that was made is not enumerated")
	}
	w.data = t.TempDir() // The answer was lost with the process, and the orchestrator retries.
	w.reopen()
	w.leads()
	_, err = w.Create(t.Context(), specOf("one"))
	w.fails("again", err, backends.Exists)
	if len(w.known.sorted()) != 1 {
		t.Error("the share of a volume that is there is not enumerated")
	}
}

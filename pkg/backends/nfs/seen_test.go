package nfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/export"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/standin"
)

// onShare returns the spec of a volume on a share of the configuration.
func onShare(name, shareName string) backends.Spec {
	spec := specOf(name)
	spec.Parameters = &Parameters{ShareName: shareName}
	return spec
}

// configured names the world's share in its configuration.
func (w *world) configured(names ...string) {
	w.config = &Config{}
	for _, name := range names {
		w.config.Shares = append(w.config.Shares, ShareConfig{Name: name, Server: testServer, Share: testShare})
	}
}

// listed returns the names of the volumes of an enumeration, in pages of the given size.
func (w *world) listed(ctx context.Context, limit int) (names []string) {
	w.Helper()
	for token := ""; ; {
		page, next, err := w.List(ctx, backends.Page{Token: token, Limit: limit})
		w.must(err)
		for _, v := range page {
			names = append(names, v.Name)
		}
		if token = next; token == "" {
			slices.Sort(names)
			return names
		}
	}
}

// A share has several names and addresses, one of which is a suffix of another, and the configuration has lost the name
// that a volume was created by. Each volume is listed, once.
func TestShareWithSeveralNames(t *testing.T) {
	w := newWorld(t)
	w.must(os.Symlink(testServer, filepath.Join(filepath.Dir(filepath.Dir(w.root)), "a."+testServer)))
	w.configured("one", "other", "lost")
	w.reopen()
	var want []string
	for i, name := range []string{"one", "other", "lost"} {
		want = append(want, w.make(onShare(fmt.Sprint("volume-", i), name)).Name)
	}
	for i, server := range []string{testServer, "a." + testServer} {
		spec := specOf(fmt.Sprint("volume-", 3+i))
		spec.Parameters = &Parameters{Server: server, Share: testShare}
		want = append(want, w.make(spec).Name)
	}
	w.configured("one", "other")
	w.reopen()
	for _, limit := range []int{0, 1, 2, 3, 100} {
		if have := w.listed(t.Context(), limit); !slices.Equal(have, want) {
			t.Errorf("in pages of %d it lists %v, want %v", limit, have, want)
		}
	}
}

// A controller with a new data directory does not know which shares have volumes. It says so, until the configuration
// names them.
func TestListWithoutAShare(t *testing.T) {
	w := newWorld(t)
	w.make(specOf("one"))
	w.data = t.TempDir()
	w.reopen()
	_, _, err := w.List(t.Context(), backends.Page{})
	w.fails("a list without a share", err, backends.Unavailable, "--config")
	_, _, err = w.ListSnapshots(t.Context(), "", backends.Page{})
	w.fails("a list of snapshots without a share", err, backends.Unavailable, "--config")
	_, _, err = w.ListHealth(t.Context(), backends.Page{})
	w.fails("a list of what is unwell without a share", err, backends.Unavailable, "--config")
	w.configured("one")
	w.data = t.TempDir()
	w.reopen()
	if have := w.listed(t.Context(), 0); !slices.Equal(have, []string{"one"}) {
		t.Errorf("it lists %v, want the volume of an earlier controller", have)
	}
}

// A share that does not answer prevents no list of the others, and the items that were last seen on it are not gone.
func TestListWhileAShareIsAway(t *testing.T) {
	w, slow := newSlowWorld(t)
	w.make(specOf("here"))
	_, err := w.Create(t.Context(), onSlow("away"))
	w.must(err)
	both := []string{"away", "here"}
	if have := w.listed(t.Context(), 500); !slices.Equal(have, both) { // Package driver requests no more at a time.
		t.Fatalf("it lists %v, want %v", have, both)
	}
	slow.Stop(t)
	defer slow.Continue(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for range 2 {
		for _, limit := range []int{0, 1} {
			if have := w.listed(ctx, limit); !slices.Equal(have, both) {
				t.Errorf("while a share is away it lists %v in pages of %d, want %v", have, limit, both)
			}
		}
	}
	unwell, _, err := w.ListHealth(ctx, backends.Page{})
	if err != nil || len(unwell) != 1 || unwell[0].Issues[0].Reason != "ShareUnreachable" {
		t.Errorf("what is unwell is %+v, %v; want the volume that is away", unwell, err)
	}
	if text := w.log.String(); !strings.Contains(text, "does not answer") || !strings.Contains(text, slowServer) {
		t.Errorf("the log does not name the share that is away:\n%s", text)
	}
	w.make(specOf("new"))
	if have, want := w.listed(ctx, 0), []string{"away", "here", "new"}; !slices.Equal(have, want) {
		t.Errorf("it lists %v, want %v", have, want)
	}
}

// unexported has a server that has lost its exports: mounting them fails with the kernel's error.
type unexported struct{ standin.Servers }

func (m unexported) Open(ctx context.Context, address export.Address) (*export.Root, error) {
	if address.Server == slowServer {
		return nil, backends.Errorf(backends.Unavailable, "mounting %s: %w", address, unix.ENOENT)
	}
	return m.Servers.Open(ctx, address)
}

// A share that the server no longer exports is away. It is not an empty share.
func TestListWhileAShareIsNotExported(t *testing.T) {
	w := newWorld(t)
	w.configured("one")
	w.config.Shares = append(w.config.Shares, ShareConfig{Name: "other", Server: slowServer, Share: testShare})
	w.mount = unexported{w.mount.(standin.Servers)}
	w.reopen()
	w.make(specOf("here"))
	_, _, err := w.List(t.Context(), backends.Page{})
	w.fails("a list of what is not known", err, backends.Unavailable, "@other")
}

// A share whose identity this process does not know is away: the rest of a list that another process began does not
// omit it.
func TestRestOfAListWhileAShareIsAway(t *testing.T) {
	w := newWorld(t)
	w.configured("one")
	w.must(os.Mkdir(filepath.Join(filepath.Dir(filepath.Dir(w.root)), slowServer), 0o755))
	elsewhere := filepath.Join(filepath.Dir(filepath.Dir(w.root)), slowServer, testShare)
	w.must(os.Mkdir(elsewhere, 0o755))
	w.config.Shares = append(w.config.Shares, ShareConfig{Name: "other", Server: slowServer, Share: testShare})
	w.reopen()
	for i := range 3 {
		w.make(onShare(fmt.Sprint("here", i), "one"))
		w.make(onShare(fmt.Sprint("there", i), "other"))
	}
	_, next, err := w.List(t.Context(), backends.Page{Limit: 1})
	w.must(err)
	w.must(os.Rename(elsewhere, elsewhere+".away"))
	w.reopen()
	_, _, err = w.List(t.Context(), backends.Page{Token: next})
	w.fails("the rest of the list", err, backends.Unavailable, "@other")
}

// The remembered list of a share does not contain a volume that was deleted since.
func TestListForgetsWhatChanges(t *testing.T) {
	w, slow := newSlowWorld(t)
	v, err := w.Create(t.Context(), onSlow("one"))
	w.must(err)
	w.listed(t.Context(), 0)
	w.must(w.Delete(t.Context(), v.Handle))
	w.eventually("the removal", func() bool {
		left, err := filepath.Glob(filepath.Join(slow.Dir, share.HomeName, share.Trash, "*"))
		return err == nil && len(left) == 0
	})
	slow.Stop(t)
	defer slow.Continue(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, _, err = w.List(ctx, backends.Page{})
	w.fails("a list of what is not known", err, backends.Unavailable, slowServer)
}

// The trash is emptied after a restart, and after the end of the controller that filled it, without any creation of a
// volume on the share.
func TestTrashIsRemovedWithoutACall(t *testing.T) {
	for name, takeover := range map[string]bool{"restart": false, "takeover": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.configured("one")
			w.reopen()
			v := w.make(in("one", "ns/one", deleteData))
			w.write("text", "ns", "one", "file")
			w.shut()
			if takeover {
				w.data = t.TempDir()
				w.open()
			}
			r := w.recordOf(v)
			w.must(os.Rename(w.path(share.At(share.Volumes, r.ID+suffix)), w.path(share.At(share.Trash, r.key()+suffix))))
			if !takeover {
				w.open()
			}
			w.tidy(0, 0)
			if _, err := os.Lstat(w.path("ns", "one")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the directory of the deleted volume: %v", err)
			}
		})
	}
}

// Nor do drafts of a killed controller wait for a call.
func TestDraftsAreRemovedWithoutACall(t *testing.T) {
	w := newWorld(t)
	w.configured("one")
	w.make(specOf("one"))
	w.attempt(in("two", "ns/two", deleteData))
	w.data = t.TempDir()
	w.hurry(func(p *pace) { p.patience = 50 * time.Millisecond })
	w.tidy(1, 0)
}

// A list is remembered despite a change on another share meanwhile, but not after a change on its own.
func TestChangesOnAnotherShare(t *testing.T) {
	for changed, remembered := range map[string]bool{"one": true, "other": false} {
		w, _ := newPair(t)
		w.make(onShare("first", "other"))
		p, err := w.target(onShare("x", "other"))
		w.must(err)
		_, h := w.opened(onShare("x", "other"))
		on := asked{place: p, home: h.Identity()}
		turn := w.seen.turn(on.home)
		w.make(onShare("second", changed))
		w.seen.remember(volumeKind, on, turn, &sightings{})
		on.away = errors.New("it is away")
		if _, err := w.seen.recall(volumeKind, on, "", 0, nil); (err == nil) != remembered {
			t.Errorf("after a change on %q: recalling it: %v", changed, err)
		}
		w.shut()
	}
}

// recordOf returns the record of a volume from the share.
func (w *world) recordOf(v *backends.Volume) *record {
	w.Helper()
	h, _, _, ok := decodeHandle(volumeKind, v.Handle)
	if !ok {
		w.Fatalf("%q is no handle", v.Handle)
	}
	data, err := os.ReadFile(w.path(share.At(share.Volumes, h.id+suffix)))
	w.must(err)
	r, err := decodeRecord(data, v.Handle)
	w.must(err)
	return r
}

// A process that only serves a node removes nothing: its server may map it to nobody, and there are many nodes.
func TestNodesRemoveNothing(t *testing.T) {
	w := newWorld(t)
	w.configured("one")
	w.nodeOnly = true
	v := w.make(specOf("one"))
	w.shut()
	r := w.recordOf(v)
	w.must(os.Rename(w.path(share.At(share.Volumes, r.ID+suffix)), w.path(share.At(share.Trash, r.key()+suffix))))
	w.open()
	<-time.After(4 * firstRetry)
	if _, err := os.Lstat(w.path(share.At(share.Trash, r.key()+suffix))); err != nil {
		t.Errorf("a node has emptied the trash: %v", err)
	}
}

package nfs

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/export"
	"github.com/stowage-csi/stowage/pkg/backends/nfs/share"
)

// twoVolumes creates two volumes with one file each.
func (w *world) twoVolumes() (handles []string) {
	w.Helper()
	for _, name := range []string{"one", "two"} {
		handles = append(handles, w.make(in(name, name, deleteData)).Handle)
		w.write("first", name, "file")
	}
	return handles
}

// A group is of one instant, or it is refused as a whole and leaves nothing.
func TestGroupIsOfOneInstant(t *testing.T) {
	w := newWorld(t)
	spec := backends.GroupSpec{Name: "g", Volumes: w.twoVolumes()}
	for i := range 300 {
		w.write("x", "one", fmt.Sprint("file", i))
	}
	w.noticed()
	stop := w.writing("two")
	_, err := w.CreateGroup(w.Context(), spec)
	w.fails("a group with a volume that is written to", err, backends.InUse, "written to")
	stop()
	w.tidy(2, 0)
	_, err = w.FindGroup(w.Context(), spec.Name)
	w.fails("finding it then", err, backends.NotFound)
	var g *backends.Group
	w.ask("asking again", func() error {
		var err error
		g, err = w.CreateGroup(w.Context(), spec)
		return unless(err, backends.InUse)
	})
	for g == nil { // The volume must be unchanged for a while first.
		<-time.After(100 * time.Millisecond)
		g, err = w.CreateGroup(w.Context(), spec)
		w.must(unless(err, backends.InUse))
	}
	w.tidy(2, 2)
	for i, name := range []string{"one", "two"} {
		restored, err := w.Restore(w.Context(), in("restored "+name, "restored-"+name, deleteData), g.Snapshots[i].Handle)
		w.must(err)
		if have, want := contents(t, w.path(restored.Attributes["subDir"])), contents(t, w.path(name)); have != want {
			t.Errorf("member %d has\n%s\nwant\n%s", i, have, want)
		}
	}
	w.must(w.DeleteGroup(w.Context(), g.Handle))
	w.tidy(4, 0)
}

// The remains of a group that was given up are not mistaken for parts of a later one of its name, and do not stay.
func TestGroupThatWasGivenUp(t *testing.T) {
	w := newWorld(t)
	volumes := w.twoVolumes()
	w.noticed()
	w.ask("making it", func() error {
		_, err := w.CreateGroup(w.Context(), backends.GroupSpec{Name: "g", Volumes: volumes})
		return err
	})
	g, err := w.FindGroup(w.Context(), "g")
	w.must(err)
	// The group's own record has moved to the trash, and the process was killed before it continued.
	records, err := filepath.Glob(w.path(share.HomeName, share.Groups, "*.json"))
	w.must(err)
	r, err := os.ReadFile(records[0])
	w.must(err)
	group, err := decodeRecord(r, "")
	w.must(err)
	w.must(os.Rename(records[0], w.path(share.HomeName, share.Trash, group.key()+suffix)))
	w.reopen()
	_, err = w.GetSnapshot(w.Context(), g.Snapshots[0].Handle)
	w.fails("a member whose group is gone", err, backends.NotFound)
	if left, _, err := w.ListSnapshots(w.Context(), "", backends.Page{}); len(left) != 0 || err != nil {
		t.Errorf("without the group there are the snapshots %v (%v)", left, err)
	}
	w.ask("making it again", func() error {
		_, err := w.CreateGroup(w.Context(), backends.GroupSpec{Name: "g", Volumes: volumes})
		return err
	})
	w.ask("waking the janitor",
		func() error { return w.Delete(w.Context(), w.make(in("last", "last", deleteData)).Handle) })
	w.tidy(2, 2)
	again, err := w.FindGroup(w.Context(), "g")
	w.must(err)
	for _, s := range again.Snapshots {
		_, err := w.GetSnapshot(w.Context(), s.Handle)
		w.must(err)
	}
}

// A group's record holds all of its members, however long their names are.
func TestLargestGroup(t *testing.T) {
	r := record{Kind: groupKind}
	for range backends.MostMembers {
		r.Members = append(r.Members, member{ID: strings.Repeat("f", 32), Volume: strings.Repeat("v", maxHandle)})
	}
	if data, err := r.encode(); err != nil || len(data) > share.MaxRecord {
		t.Errorf("the record of %d members has %d bytes (%v), and %d are read", len(r.Members), len(data), err,
			share.MaxRecord)
	}
	w := newWorld(t)
	_, err := w.CreateGroup(t.Context(), backends.GroupSpec{Name: "g", Volumes: make([]string, backends.MostMembers+1)})
	w.fails("a group that is too large", err, backends.Invalid, "256")
}

func TestGroupsAreOfOneShare(t *testing.T) {
	w := newWorld(t)
	w.must(os.MkdirAll(filepath.Join(filepath.Dir(w.root), "other"), 0o755))
	one := w.make(in("one", "one", deleteData))
	elsewhere := in("two", "two", deleteData)
	elsewhere.Parameters.(*Parameters).Share = "/other"
	two := w.make(elsewhere)
	_, err := w.CreateGroup(w.Context(), backends.GroupSpec{Name: "g", Volumes: []string{one.Handle, two.Handle}})
	w.fails("a group of two shares", err, backends.InUse, "/export", "/other")
}

// The volumes of a group are of one share, even if one class gives its name and another its address.
func TestGroupOfAShareByTwoNames(t *testing.T) {
	w := newWorld(t)
	w.configured("one")
	w.reopen()
	volumes := []string{w.make(onShare("one", "one")).Handle, w.make(in("two", "two", deleteData)).Handle}
	for i, name := range []string{"g", "reverse"} {
		g, err := w.CreateGroup(t.Context(), backends.GroupSpec{Name: name, Volumes: volumes})
		if err != nil || len(g.Snapshots) != len(volumes) {
			t.Errorf("group %d is %+v, %v; want a snapshot of each volume", i, g, err)
		}
		slices.Reverse(volumes)
	}
}

// A group that has lost the record of a snapshot is there, but unusable. It can still be deleted.
func TestGroupWithALostMember(t *testing.T) {
	w := newWorld(t)
	spec := backends.GroupSpec{Name: "g", Volumes: w.twoVolumes()}
	w.noticed()
	w.ask("making it", func() error { return second(w.CreateGroup(t.Context(), spec)) })
	g, err := w.FindGroup(t.Context(), spec.Name)
	w.must(err)
	lost := share.At(share.Snapshots, idOf(t, snapshotKind, g.Snapshots[1].Handle)+suffix)
	w.must(os.Remove(w.path(lost)))
	w.noticed()
	w.fails("getting it", second(w.GetGroup(t.Context(), g.Handle)), backends.Unusable, lost)
	w.fails("finding it", second(w.FindGroup(t.Context(), "g")), backends.Unusable, lost)
	w.must(w.DeleteGroup(t.Context(), g.Handle))
	w.fails("getting it then", second(w.GetGroup(t.Context(), g.Handle)), backends.NotFound)
	w.fails("finding it then", second(w.FindGroup(t.Context(), "g")), backends.NotFound)
	w.tidy(2, 0)
}

// A group whose controller was killed between the link and the moves exists: it is not NotFound.
func TestGroupPublishedAndNotYetInPlace(t *testing.T) {
	w := newWorld(t)
	v := w.make(in("one", "dir/one", deleteData))
	p, err := w.target(in("one", "dir/one", deleteData))
	w.must(err)
	s, release, err := w.pool.Hold(t.Context(), p.Address)
	w.must(err)
	defer release()
	h, err := s.Home(true)
	w.must(err)
	m := &making{engine: w.engine, share: s, home: h, place: p}
	m.turn, err = w.lead(t.Context(), h, snapshotCalls, "a test's")
	w.must(err)
	id, err := h.ID(string(groupKind), "g")
	w.must(err)
	r, err := m.plannedGroup(backends.GroupSpec{Name: "g", Volumes: []string{v.Handle}}, id, true)
	w.must(err)
	w.must(m.begin(r))
	for _, name := range r.drafts() {
		w.must(m.share.Files().Mkdir(share.At(share.Staging, name), 0o700))
	}
	w.must(m.writeMembers(r))
	w.must(h.Publish(r.key()+suffix, share.Groups, r.ID+suffix))
	if _, err := w.GetGroup(t.Context(), r.Handle); err != nil {
		t.Errorf("getting the group: %v", err)
	}
	if _, err := w.FindGroup(t.Context(), "g"); err != nil {
		t.Errorf("finding the group: %v", err)
	}
}

// A group is found although the server of another share, which is asked too, does not answer.
func TestGroupBesideAServerThatStops(t *testing.T) {
	w, slow := newSlowWorld(t)
	w.config.Shares = []ShareConfig{{Name: "a", Server: slowServer, Share: "/export"},
		{Name: "z", Server: testServer, Share: testShare}}
	w.reopen()
	w.make(onShare("one", "a"))
	v := w.make(onShare("two", "z"))
	g, err := w.CreateGroup(t.Context(), backends.GroupSpec{Name: "group", Volumes: []string{v.Handle}})
	w.must(err)
	slow.Stop(t)
	defer slow.Continue(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if found, err := w.FindGroup(ctx, "group"); err != nil || found.Handle != g.Handle {
		t.Errorf("got %v, %v; want %s", found, err, g.Handle)
	}
}

// slowMount delays the mounts of one server until they may continue, or their caller gives up.
type slowMount struct {
	export.Mounter
	asked chan context.Context
	goOn  chan struct{}
}

func (m slowMount) Open(ctx context.Context, address export.Address) (*export.Root, error) {
	if address.Server == slowServer {
		m.asked <- ctx
		select {
		case <-m.goOn:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return m.Mounter.Open(ctx, address)
}

// A group is found while another share is being mounted, for which other calls wait too. The answer does not end that
// mount.
func TestFoundGroupEndsNoMount(t *testing.T) {
	w, _ := newPair(t)
	w.make(onShare("elsewhere", "other"))
	v := w.make(onShare("one", "one"))
	g, err := w.CreateGroup(t.Context(), backends.GroupSpec{Name: "group", Volumes: []string{v.Handle}})
	w.must(err)
	slow := slowMount{w.mount, make(chan context.Context, 1), make(chan struct{})}
	w.mount, w.nodeOnly = slow, true // Nothing else mounts.
	w.reopen()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	if found, err := w.FindGroup(ctx, "group"); err != nil || found.Handle != g.Handle {
		t.Errorf("got %v, %v; want %s", found, err, g.Handle)
	}
	mounting := <-slow.asked
	cancel()
	if err := mounting.Err(); err != nil {
		t.Errorf("the mount of the other share was given up with the call that has its answer: %v", err)
	}
	close(slow.goOn)
	if _, err := w.Find(t.Context(), onShare("elsewhere", "other")); err != nil {
		t.Errorf("who waits for the mount too: %v", err)
	}
}

package local

import (
	"context"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
)

// An item exists until all copies from it are complete. Later callers are told that it is gone.
func TestNothingIsRemovedWhileItIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		v := f.create("image", "one")
		s := f.snapshot("one", v.Handle)
		g, err := f.CreateGroup(t.Context(), backends.GroupSpec{Name: "one", Volumes: []string{v.Handle}})
		must(t, err)
		volume, err := f.stock.volumes.get(v.Handle)
		must(t, err)
		snapshot, err := f.stock.snapshots.get(s.Handle)
		must(t, err)
		group, err := f.stock.groups.get(g.Handle)
		must(t, err)
		member := group.members[0]
		hasKind(t, "the removal of a member alone", f.DeleteSnapshot(t.Context(), member.record.Handle), backends.InUse,
			"delete the group")
		removeVolume := func(ctx context.Context) error { return f.removeVolume(ctx, volume) }
		removeSnapshot := func(ctx context.Context) error { return f.stock.removeSnapshot(ctx, snapshot) }
		removeGroup := func(ctx context.Context) error { return f.stock.removeGroup(ctx, group) }
		f.keeps("volume", volume.data(), volume.guard, removeVolume)
		f.keeps("snapshot", snapshot.data(), snapshot.guard, removeSnapshot)
		f.keeps("group", group.dir, group.guard, removeGroup)
		f.keeps("member of the group", member.data(), member.guard, removeGroup)
		must(t, f.Delete(t.Context(), v.Handle))
		must(t, f.DeleteSnapshot(t.Context(), s.Handle))
		must(t, f.DeleteGroup(t.Context(), g.Handle))
		for what, guard := range map[string]*guard{"volume": volume.guard, "snapshot": snapshot.guard, "group": group.guard,
			"member": member.guard} {
			_, err := guard.share(t.Context())
			hasKind(t, "holding the "+what, err, backends.NotFound)
		}
		f.holdsOnly()
		f.promised(0)
	})
}

// keeps checks, on the virtual clock, that a removal waits for the holders of the item, and removes nothing meanwhile.
func (f *fixture) keeps(what, path string, guard *guard, remove func(context.Context) error) {
	f.Helper()
	release, err := guard.share(context.Background())
	must(f, err)
	defer release()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	hasKind(f, "the removal of a "+what+" that is held", remove(ctx), backends.Busy)
	if ctx.Err() == nil {
		f.Errorf("the removal of the %s did not wait", what)
	}
	if _, err := os.Stat(path); err != nil {
		f.Errorf("the %s is gone: %v", what, err)
	}
}

// A deletion moved an item to the trash, could not make that durable, and could not move the item back either. The next
// call deletes the item, with what is in the trash.
func TestDeletionThatWasNeitherDurableNorUndone(t *testing.T) {
	f := newFixture(t)
	v := f.create("directory", "one")
	s := f.snapshot("one", v.Handle)
	p := f.in("directory")
	for folder, handle := range map[string]string{volumesFolder: v.Handle, snapshotsFolder: s.Handle} {
		must(t, os.Rename(p.entry(folder, handle), p.entry(trashFolder, unique(handle))))
	}
	must(t, f.Delete(t.Context(), v.Handle))
	must(t, f.DeleteSnapshot(t.Context(), s.Handle))
	f.holdsOnly()
	f.promised(0)
}

// As before, while the removal of the trash takes long. What was promised stays taken until the trash is gone.
func TestTrashOfAnEarlierCallCounts(t *testing.T) {
	f := newFixture(t)
	v, p := f.create("directory", "one"), f.in("directory")
	must(t, os.Rename(p.entry(volumesFolder, v.Handle), p.entry(trashFolder, unique(v.Handle))))
	p.janitor.stop()
	must(t, f.Delete(t.Context(), v.Handle))
	if have := p.ledger.sum(); have != 4<<20 {
		t.Errorf("the ledger has promised %d bytes, want those of the volume", have)
	}
	f.reopen()
	f.promised(0)
	f.holdsOnly()
}

package local

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stowage-csi/stowage/pkg/backends"
	"github.com/stowage-csi/stowage/tests/stall"
	"github.com/stowage-csi/stowage/tests/testfs"
)

// A disk is lost between the step that moves a volume to its place and the sync that makes it durable. The volume may
// exist, so no call reports that it does not.
func TestDiskLostWhilePublishing(t *testing.T) {
	server := stall.Serve(t)
	f := newFixture(t, PoolConfig{Name: "slow", Type: "image", Path: filepath.Join(server.Dir, "pool")})
	server.StopAt(t, stall.SyncDir, 2) // of the draft, and of the volumes' folder
	failed := make(chan error, 1)
	go func() { failed <- second(f.Create(t.Context(), specIn("slow", "one"))) }()
	for begun := time.Now(); !server.Stopped(t); <-time.After(time.Millisecond) {
		if time.Since(begun) > patience {
			t.Fatal("the server was not asked to sync two directories")
		}
	}
	must(t, server.Kill())
	hasKind(t, "Create", <-failed, backends.Unavailable, "may or may not be kept")
	handle := handleOf(volumePrefix, "one")
	if _, err := os.Stat(filepath.Join(server.Real, "pool", volumesFolder, handle)); err != nil {
		t.Fatalf("it is not in its place (%v), so that nothing is tested", err)
	}
	f.isAway(handle, "slow", "may or may not be kept")
	hasKind(t, "Delete", f.Delete(t.Context(), handle), backends.Unusable)
	hasKind(t, "Create again", second(f.Create(t.Context(), specIn("slow", "one"))), backends.Unusable)
}

// An item that may exist though its creation failed is found, and can be used, once the pool works again. This holds
// even if the pool is mended before the failed call has released the handle.
func TestStrayIsFound(t *testing.T) {
	f := newFixture(t)
	p, record := f.in("image"), goodVolumeRecord()
	record.Name, record.Handle, record.OnDelete = "one", handleOf(volumePrefix, "one"), deleteData
	must(t, p.take(t.Context(), record.SizeBytes))
	d, err := p.newDraft(record.Handle)
	must(t, err)
	must(t, image.storage().fill(t.Context(), f.engine, filepath.Join(d.path, image.storage().data), record, nothing()))
	must(t, second(d.publish(t.Context(), volumesFolder, record)))
	d.stray = volumesFolder
	must(t, f.stock.volumes.reserve(record.Handle)) // The call that creates the volume has it.
	f.stock.giveUp(d, record.SizeBytes, errors.New("its folder could not be synced"))
	f.promised(0)
	f.mend()
	hasKind(t, "Get", second(f.Get(t.Context(), record.Handle)), backends.Unusable, "its folder could not be synced")
	f.stock.volumes.abandon(record.Handle)
	f.isAway(record.Handle, "its folder could not be synced")
	f.mend()
	must(t, second(f.Get(t.Context(), record.Handle)))
	f.promised(record.SizeBytes)
	must(t, f.Delete(t.Context(), record.Handle))
	f.holdsOnly()
}

// A server does a move and answers with an error: the volume is not reported as gone, and a deletion leaves nothing.
func TestMovedThoughTheServerSaysNo(t *testing.T) {
	server := stall.Serve(t)
	f := newFixture(t, PoolConfig{Name: "slow", Type: "image", Path: filepath.Join(server.Dir, "pool")})
	server.DenyMove(t, 1)
	hasKind(t, "Create", second(f.Create(t.Context(), specIn("slow", "one"))), backends.Unavailable, "may or may not")
	handle := handleOf(volumePrefix, "one")
	f.isAway(handle, "slow")
	f.promised(0)
	server.DenySync(t, 1)
	f.mend()
	f.isAway(handle, "slow") // A loss of power could undo the move.
	f.mend()
	f.use(handle)
	f.promised(4 << 20)
	f.holdsOnly("volumes/" + handle)
	must(t, f.Release(t.Context(), handle))
	server.DenyMove(t, 1)
	must(t, f.Delete(t.Context(), handle))
	f.holdsOnly()
	f.promised(0)
}

// A move by a killed process is made durable before it is acknowledged.
func TestMovesOfBeforeTheStartAreKept(t *testing.T) {
	server := stall.Serve(t)
	f := newFixture(t, PoolConfig{Name: "slow", Type: "image", Path: filepath.Join(server.Dir, "pool")})
	f.create("slow", "one")
	for i, folder := range []string{volumesFolder, snapshotsFolder, groupsFolder} {
		f.shut()
		server.DenySync(t, i+1)
		f.open()
		if !strings.Contains(f.log.String(), "the names in "+f.in("slow").folder(folder)) {
			t.Errorf("the names in %s were not synced at the start:\n%s", folder, f.log)
		}
	}
}

// A draft that cannot be moved to the trash keeps its promise until it is gone, which it is once it can be moved.
func TestDraftThatCannotBeMoved(t *testing.T) {
	mount := testfs.New(t, "ext4", 64)
	f := newFixture(t, PoolConfig{Name: "disk", Type: "image", Path: filepath.Join(mount, "pool")})
	p := f.in("disk")
	must(t, p.take(t.Context(), 1<<20))
	d, err := p.newDraft(handleOf(volumePrefix, "one"))
	must(t, err)
	must(t, os.Mkdir(filepath.Join(d.path, "data"), 0o700))
	testfs.Run(t, "chattr", "+i", p.folder(stagingFolder))
	d.discard(1 << 20)
	f.promised(1 << 20)
	testfs.Run(t, "chattr", "-i", p.folder(stagingFolder))
	f.mend()
	f.promised(0)
	f.holdsOnly()
}
